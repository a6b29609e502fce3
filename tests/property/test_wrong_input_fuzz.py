"""Wrong input by the hundred: what every verb promises, whatever is in a file or on a flag.

Of each case: the exit status is a documented one; a run that fails prints at most three lines, none
of them a traceback, in less than a minute; no file changes but the output; results are JSON without
NaN; and where a checksum guards a file, a run that succeeds gives the value that it gives on the
good file. `make fuzz N=10000` tries more.
"""

import collections
import json
import os
import pathlib
import resource
import shutil
import tempfile
import time

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from data_prep.tasks.task_data import read_task, stream_task
from official.xlnet import cli
from official.xlnet.configs.task import TaskConfig
from official.xlnet.errors import XLNetError
from tests.helpers.checkpoints import hf_of_tf1, random_values, tf1_shapes, write_hf, write_tf1
from tests.helpers.mutations import changed_arguments, changed_file
from tests.helpers.wrong_input import MOST_LINES, STATUSES, digest, make_world, strict_json

CASES = int(os.environ.get("XLNET_FUZZ_CASES", "300"))
SECONDS = 60
MOST_BYTES = 8 << 30  # Of the whole process.

TASK_FILES = {
    "classification.jsonl": '{"text": "the water", "label": "good"}\n{"text": "no", "label": "x"}\n',  # noqa: E501
    "classification.tsv": "label\ttext\ngood\tthe water\nbad\tnot now\n",
    "classification.csv": 'label,text\ngood,"the, water"\nbad,not now\n',
    "regression.jsonl": '{"text": "the", "label": 1.5}\n{"text": "no", "label": -2}\n',
    "multi_label.jsonl": '{"text": "the", "label": ["a", "b"]}\n{"text": "no", "label": "a,c"}\n',
    "multiple_choice.jsonl": '{"text": "the", "choices": ["a", "b"], "label": 1}\n',
    "ranking.jsonl": '{"query": "q", "document": "d", "relevance": 1}\n',
    "token_classification.txt": "the O\nwater B-X\n\nnot O\n",
    "question_answering.json": json.dumps(
        {
            "data": [
                {
                    "paragraphs": [
                        {
                            "context": "the water",
                            "qas": [
                                {
                                    "id": "1",
                                    "question": "what?",
                                    "answers": [{"text": "water", "answer_start": 4}],
                                }
                            ],
                        }
                    ]
                }
            ]
        }
    ),
}


@pytest.fixture(scope="module")
def world(tmp_path_factory, vocab_file):
    world = make_world(tmp_path_factory.mktemp("fuzz"))
    values = random_values(tf1_shapes())
    write_hf(str(world / "hf"), vocab_file, hf_of_tf1(values))
    write_tf1(str(world / "tf1"), vocab_file, values)
    for name, text in TASK_FILES.items():
        (world / name).write_text(text)
    return world


def commands(world, out):
    """{name: (command line, the folder or file it reads, whether checksums guard all of that)}."""
    text, config = f"--input={world / 'text.txt'}", f"--config={world / 'config.yaml'}"
    prepare = ["prepare", text, f"--vocab={world / 'vocab'}", config, "--num_workers=1"]
    language, task = world / "language", world / "task"
    records = f"--data={world / 'data'}"
    return {
        "prepare text": ([*prepare, f"--output={out}"], "text.txt", False),
        "prepare config": ([*prepare, f"--output={out}"], "config.yaml", False),
        "prepare vocab": ([*prepare, f"--output={out}"], "vocab", False),
        "prepare jsonl": (
            [*prepare, f"--input={world / 'text.jsonl'}", f"--output={out}"],
            "text.jsonl",
            False,
        ),
        "vocab": (["vocab", text, f"--output={out}", "--size=60"], "text.txt", False),
        "records": (["inspect", "records", str(world / "data"), f"--output={out}.html"], "data", 0),
        "convert": (
            ["convert", f"--source={language}", f"--output={out}", "--to=hf"],
            "language",
            0,
        ),
        "convert hf": (["convert", f"--source={world / 'hf'}", f"--output={out}"], "hf", False),
        "convert tf1": (["convert", f"--source={world / 'tf1'}", f"--output={out}"], "tf1", False),
        "score": (["score", f"--model={language}", "--text=the water"], "language", False),
        "evaluate": (["evaluate", f"--model={language}", records], "data", True),
        "predict": (
            [*("predict", f"--model={task}", f"--input={world / 'dev.tsv'}"), f"--output={out}"],
            "task",
            False,
        ),
        "pretrain": (
            ["pretrain", config, records, f"--model_dir={out}", "--steps=1"],
            "data",
            True,
        ),
    }


# How often each is tried: those that train or build graphs take seconds when they succeed.
WEIGHTS = {"score": 1, "evaluate": 1, "predict": 1, "pretrain": 1}


def names_of(world):
    return [name for name in commands(world, "") for _ in range(WEIGHTS.get(name, 8))]


def run(capfd, arguments):
    capfd.readouterr()
    start = time.monotonic()
    status = cli.main(arguments)
    captured = capfd.readouterr()
    assert time.monotonic() - start < SECONDS, arguments
    assert status in STATUSES, (arguments, captured.err[-2000:])
    if status:
        assert "Traceback" not in captured.err, (arguments, captured.err[-2000:])
        lines = captured.err.splitlines()
        assert 0 < len(lines) <= MOST_LINES, (arguments, captured.err[-2000:])
        assert len(captured.err) < 4000
    return status, strict_json(captured.out.splitlines()[-1]) if not status else None


def test_files(world, capfd):
    """A file that a verb reads, made wrong."""
    counts = collections.Counter()
    good = {}

    @tried(share=0.5)
    @given(st.data())
    def check(data):
        name = data.draw(st.sampled_from(names_of(world)), label="verb")
        with tempfile.TemporaryDirectory() as directory:
            here = pathlib.Path(directory) / "in"
            shutil.copytree(world, here)
            arguments, read, is_guarded = commands(here, pathlib.Path(directory) / "out")[name]
            files = sorted(p for p in [here / read, *(here / read).rglob("*")] if p.is_file())
            path = data.draw(st.sampled_from(files), label="file")
            if is_guarded and name not in good:
                good[name] = run(capfd, arguments)
                shutil.rmtree(f"{directory}/out", ignore_errors=True)
            path.write_bytes(data.draw(changed_file(path.name, path.read_bytes())))
            before = digest(here)
            status, result = run(capfd, arguments)
            assert digest(here) == before
            if status == 0 and is_guarded:
                assert {**result, "tokens_per_second": 0} == {
                    **good[name][1],
                    "tokens_per_second": 0,
                }
            counts[f"{name}: status {status}"] += 1

    check()
    report(counts)


def test_arguments(world, capfd):
    """A flag of a verb, made wrong."""
    counts = collections.Counter()

    @tried(share=0.3)
    @given(st.data())
    def check(data):
        name = data.draw(st.sampled_from(names_of(world)), label="verb")
        with tempfile.TemporaryDirectory() as directory:
            out = pathlib.Path(directory) / "out"
            arguments, _, _ = commands(world, out)[name]
            arguments = data.draw(changed_arguments(arguments))
            before = digest(world)
            there = os.getcwd()
            os.chdir(directory)  # Where a flag may name a file to be written.
            try:
                status, _ = run(capfd, arguments)
            finally:
                os.chdir(there)
            assert digest(world) == before, arguments
            counts[f"{name}: status {status}"] += 1

    check()
    report(counts)


def test_task_files(world):
    """A file of a task, made wrong: examples and counts, or a sentence."""
    counts = collections.Counter()

    @tried(share=0.4)
    @given(st.data())
    def check(data):
        name = data.draw(st.sampled_from(sorted(TASK_FILES)), label="file")
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, name)
            with open(path, "wb") as file:
                file.write(data.draw(changed_file(name, TASK_FILES[name].encode())))
            task = TaskConfig(name=name.partition(".")[0])
            for read in (lambda: read_task(path, task)[0], lambda: list(stream_task(path, task))):
                try:
                    examples = read()
                    counts["read"] += 1
                except XLNetError:
                    counts["refused"] += 1
                    continue
                for example in examples:
                    repr(example).encode()  # Nothing that a later file cannot hold.

    check()
    report(counts)


def tried(share):
    """Settings of a test that has a share of the cases."""
    is_long = CASES > 300
    return settings(
        max_examples=max(10, round(CASES * share)),
        deadline=None,
        derandomize=not is_long,
        database=None,
        phases=[Phase.generate] if not is_long else [Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )


def report(counts):
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    assert peak < MOST_BYTES
    print(json.dumps(counts, indent=1, sort_keys=True))
