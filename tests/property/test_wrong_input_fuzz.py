"""Wrong input by the hundred: what every verb promises, whatever is in a file or on a flag.

Of each case: the exit status is a documented one; a run that fails prints at most three lines, none
of them a traceback, in less than a minute; no file changes but the output; results are JSON without
NaN; and where a checksum guards a file, a run that succeeds gives the value that it gives on the
good file. Weights and data sets of strangers, whose checksums fit, give finite numbers in their
ranges, or a sentence. `make fuzz N=10000` tries more.
"""

import collections
import dataclasses
import json
import os
import pathlib
import re
import shutil
import tempfile
import time

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from data_prep.tasks.task_data import read_task, stream_task
from official.xlnet.analysis.record_windows import read_window
from official.xlnet.analysis.window_page import as_html
from official.xlnet.checkpoints.convert import open_source
from official.xlnet.checkpoints.convert.variable_map import Weights
from official.xlnet.configs.task import TaskConfig
from official.xlnet.data.pretraining_dataset import pretraining_dataset, reading_errors
from official.xlnet.data.schema import Manifest
from official.xlnet.errors import XLNetError
from official.xlnet.files.checksums import sha256_of
from official.xlnet.serving.export import write_version
from tests.helpers.checkpoints import (
    hf_of_tf1,
    random_values,
    read_hf,
    tf1_shapes,
    write_hf,
    write_tf1,
    write_torch,
)
from tests.helpers.served_models import random_task, service_of
from tests.helpers.wrong.arguments import WRONG, calls_by_path, other_forms
from tests.helpers.wrong.files import (
    KINDS,
    changed_arguments,
    changed_file,
    changed_kind,
    changed_records,
    write_records,
)
from tests.helpers.wrong.promises import SECONDS, report, run, tried
from tests.helpers.wrong_input import digest, make_world

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


# Names of the files that checksums guard: ours, and TensorFlow's of each value and block.
NONE, ALL, MODEL, TF1 = (
    r"(?!)",
    r"",
    r"ckpt-.*\.(index|data.*)|spiece\.model$",
    r".*\.(index|data.*)",
)


@pytest.fixture(scope="module")
def world(tmp_path_factory, vocab_file):
    world = make_world(tmp_path_factory.mktemp("fuzz"))
    values = random_values(tf1_shapes())
    write_hf(str(world / "hf"), vocab_file, hf_of_tf1(values))
    write_tf1(str(world / "tf1"), vocab_file, values)
    for name, text in TASK_FILES.items():
        (world / name).write_text(text)
    rows = [json.dumps({"text": "the water"}), json.dumps({"text": "", "id": 7})]
    (world / "rows.jsonl").write_text("\n".join(rows) + "\n")
    write_version(service_of(random_task("classification")[0], lengths=(23,)), str(world / "out"))
    (world / "out" / "1").rename(world / "exported")
    shutil.rmtree(world / "out")
    (world / "run").mkdir()
    losses = [json.dumps({"step": n, "loss": 2.0 / n}) for n in range(1, 9)]
    (world / "run/history.jsonl").write_text("\n".join(losses) + "\n")
    return world


def commands(world, out):
    """{name: (command line, what it reads, pattern of the files that checksums guard)}."""
    config, records = f"--config={world / 'config.yaml'}", f"--data={world / 'data'}"
    prepare = ["prepare", f"--input={world / 'text.txt'}", f"--vocab={world / 'vocab'}", config]
    prepare += ["--num_workers=1", f"--output={out}"]
    extend = ["vocab", f"--extend={world / 'language'}", f"--input={world / 'text.txt'}"]
    extend += [f"--output={out}"]
    language, task = f"--model={world / 'language'}", f"--model={world / 'task'}"
    texts, rows = f"--input={world / 'texts.txt'}", f"--input={world / 'rows.jsonl'}"
    vectors, table = f"--output={out}.npy", f"--input={world / 'dev.tsv'}"
    finetune = [
        *("finetune", "--task=classification", "--set=training.num_steps=2"),
        *(f"--train={world / 'train.tsv'}", f"--dev={world / 'dev.tsv'}", f"--output={out}"),
    ]
    exported = ["predict", f"--saved_model={world / 'exported'}", rows, f"--output={out}"]
    return {
        "prepare text": (prepare, "text.txt", NONE),
        "prepare config": (prepare, "config.yaml", NONE),
        "prepare vocab": (prepare, "vocab", NONE),
        "prepare jsonl": ([*prepare, f"--input={world / 'text.jsonl'}"], "text.jsonl", NONE),
        "vocab": (
            ["vocab", f"--input={world / 'text.txt'}", f"--output={out}", "--size=211"],
            "text.txt",
            NONE,
        ),
        "vocab extend": ([*extend, "--size=+9"], "language", NONE),
        "vocab extend text": ([*extend, "--size=+9"], "text.txt", NONE),
        "records": (
            ["inspect", "records", str(world / "data"), f"--output={out}.html"],
            "data",
            NONE,
        ),
        "runs": (["inspect", "runs", str(world / "run"), f"--output={out}.png"], "run", NONE),
        "convert": (
            ["convert", f"--source={world / 'language'}", f"--output={out}", "--to=hf"],
            "language",
            NONE,
        ),
        "convert hf": (["convert", f"--source={world / 'hf'}", f"--output={out}"], "hf", NONE),
        "convert tf1": (["convert", f"--source={world / 'tf1'}", f"--output={out}"], "tf1", NONE),
        "score": (["score", language, "--text=the water"], "language", MODEL),
        "score hf": (["score", f"--model={world / 'hf'}", "--text=the water"], "hf", NONE),
        "score texts": (["score", language, texts], "texts.txt", NONE),
        "generate": (["generate", language, texts], "language", MODEL),
        "embed": (["embed", language, texts, vectors], "language", MODEL),
        "embed tf1": (["embed", f"--model={world / 'tf1'}", texts, vectors], "tf1", TF1),
        "embed rows": (["embed", language, rows, vectors], "rows.jsonl", NONE),
        "evaluate": (["evaluate", language, records], "data", ALL),
        "evaluate task": (
            ["evaluate", task, f"--data={world / 'dev.tsv'}"],
            "dev.tsv",
            NONE,
        ),
        "predict": (["predict", task, table, f"--output={out}"], "task", MODEL),
        "predict exported": (exported, "exported", ALL),
        "predict exported rows": (exported, "rows.jsonl", NONE),
        "export": (["export", task, f"--output={out}", "--buckets=23"], "task", NONE),
        "pretrain": (
            ["pretrain", config, records, f"--model_dir={out}", "--steps=1"],
            "data",
            ALL,
        ),
        "finetune": (
            [
                *(*finetune, f"--config={world / 'recipe.yaml'}"),
                f"--vocab={world / 'vocab/spiece.model'}",
            ],
            "recipe.yaml",
            NONE,
        ),
        "finetune from": (
            [*finetune, f"--init_from={world / 'language'}"],
            "language",
            NONE,
        ),
    }


# Those that read and write files alone are tried more often; the others take seconds.
CHEAP = ("prepare", "vocab", "records", "runs", "convert")


def names_of(world):
    return [
        name for name in commands(world, "") for _ in range(8 if name.split()[0] in CHEAP else 1)
    ]


def outcome(result, folder):
    """What a run gave, and removes it: its result without rates, and its output files."""
    values = {name: value for name, value in result.items() if not name.endswith("_per_second")}
    files = {path.name: path.read_bytes() for path in folder.glob("out*") if path.is_file()}
    for path in folder.glob("out*"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    return values, files


@pytest.mark.slow
def test_the_good_commands_succeed(world, tmp_path, capfd):
    """Without this the others would say nothing."""
    failed = [
        name
        for number, name in enumerate(commands(world, ""))
        if run(capfd, commands(world, tmp_path / f"{number}")[name][0])[0] != 0
    ]
    assert not failed


def test_files(world, capfd):
    """A file that a verb reads, made wrong."""
    counts = collections.Counter()
    good = {}

    @tried(share=0.35)
    @given(st.data())
    def check(data):
        name = data.draw(st.sampled_from(names_of(world)), label="verb")
        with tempfile.TemporaryDirectory() as directory:
            here = pathlib.Path(directory) / "in"
            shutil.copytree(world, here)
            arguments, read, guarded = commands(here, pathlib.Path(directory) / "out")[name]
            files = sorted(p for p in [here / read, *(here / read).rglob("*")] if p.is_file())
            path = data.draw(st.sampled_from(files), label="file")
            is_guarded = re.match(guarded, path.name)
            if is_guarded and name not in good:
                good[name] = outcome(run(capfd, arguments)[1], here.parent)
            kind = data.draw(st.sampled_from(["content"] * 2 * len(KINDS) + [*KINDS]), label="kind")
            if kind == "content":
                path.write_bytes(data.draw(changed_file(path.name, path.read_bytes())))
            else:
                changed_kind(path, kind)
            before = digest(here)
            status, result = run(capfd, arguments)
            assert digest(here) == before
            if status == 0 and is_guarded and kind == "content":
                assert outcome(result, here.parent) == good[name]
            counts[f"{name}: status {status}"] += 1

    check()
    report(counts)


def test_weights(world):
    """A folder of a stranger: finite weights of the shapes that its configuration says, or not."""
    counts = collections.Counter()
    with tempfile.TemporaryDirectory() as directory:
        folders = [pathlib.Path(directory, form) for form in ("hf", "torch", "tf1")]
        for folder in folders:
            shutil.copytree(world / ("tf1" if folder.name == "tf1" else "hf"), folder)
        write_torch(folders[1] / "pytorch_model.bin", read_hf(world / "hf"))
        (folders[1] / "model.safetensors").unlink()

        @tried(share=0.2)
        @given(st.data())
        def check(data):
            folder = data.draw(st.sampled_from(folders), label="form")
            files = sorted(path for path in folder.iterdir() if path.name != "spiece.model")
            path = data.draw(st.sampled_from(files), label="file")
            good = path.read_bytes()
            path.write_bytes(data.draw(changed_file(path.name, good)))
            start = time.process_time()
            try:
                source = open_source(str(folder))
                source.config.check()
                weights = Weights(source, "xlnet")
                for name, shape in weights.shapes.items():
                    value = weights.read(name)
                    assert value.shape == shape and np.isfinite(value).all(), name
                counts[f"{folder.name}: read"] += 1
            except XLNetError as error:
                assert "\n" not in str(error)
                counts[f"{folder.name}: refused"] += 1
            finally:
                path.write_bytes(good)
            assert time.process_time() - start < SECONDS

        check()
    report(counts)


def test_data_sets(world):
    """Records of a stranger with checksums that fit: batches in their ranges, or a sentence."""
    counts = collections.Counter()
    good = world / "data"
    manifest = Manifest.load(str(good))
    lanes = {
        name: [
            {
                key: list(feature.int64_list.value)
                for key, feature in tf.train.Example.FromString(record).features.feature.items()
            }
            for record in tf.data.TFRecordDataset(str(good / name)).as_numpy_iterator()
        ]
        for name in manifest.splits["train"].files
    }
    names = list(lanes)

    @tried(share=0.1)
    @given(st.data())
    def check(data):
        with tempfile.TemporaryDirectory() as directory:
            here = pathlib.Path(directory) / "data"
            shutil.copytree(good, here)
            number = data.draw(st.integers(0, len(names) - 1), label="lane")
            records = data.draw(changed_records(lanes[names[number]]))
            codec = data.draw(st.sampled_from(["", "", "", "GZIP"]), label="compression")
            write_records(here / names[number], records, codec)
            train = manifest.splits["train"]
            files = {**train.files, names[number]: sha256_of(str(here / names[number]))}
            splits = {**manifest.splits, "train": dataclasses.replace(train, files=files)}
            dataclasses.replace(manifest, splits=splits).save(str(here))
            changed = [n for n in range(len(records)) if records[n] != lanes[names[number]][n]]
            windows = {0, *changed[:2], train.windows_per_lane - 1}
            try:
                with reading_errors(str(here), "train"):
                    for batch in pretraining_dataset(str(here), len(names), epochs=1):
                        ids = batch["token_ids"].numpy()
                        assert ids.min() >= 0 and ids.max() < manifest.vocab_size
                        assert set(np.unique(batch["segment_ids"])) <= {0, 1, 2}
                for index in windows:
                    as_html(read_window(str(here), lane=number, index=index))
                counts["read"] += 1
            except XLNetError as error:
                assert "\n" not in str(error)
                counts["refused"] += 1

    check()
    report(counts)


def test_arguments(world, capfd):
    """A flag of a verb, made wrong."""
    counts = collections.Counter()

    @tried(share=0.2)
    @given(st.data())
    def check(data):
        # Without one of its flags a fine-tuning is a large one.
        names = [name for name in names_of(world) if not name.startswith("finetune")]
        name = data.draw(st.sampled_from(names), label="verb")
        with tempfile.TemporaryDirectory() as directory:
            out = pathlib.Path(directory) / "out"
            arguments, _, _ = commands(world, out)[name]
            arguments = data.draw(changed_arguments(arguments))
            before = digest(world)
            there, here = os.getcwd(), pathlib.Path(directory) / "a/b"
            here.mkdir(parents=True)
            os.chdir(here)  # Where a flag may name a file to be written, such as `../../x`.
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

    @tried(share=0.15)
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


def test_python(world):
    """An argument in another form gives the same; a wrong one a result, or a sentence."""
    counts, known, good = collections.Counter(), calls_by_path(world), {}

    def result(name, **changed):
        found = known[name][0](**{**known[name][1], **changed})
        found = {"load_config": str, "load_tokenizer": len}.get(name, lambda x: x)(found)
        return [found] if name.startswith(("load", "generate", "embed")) else repr(found)

    @tried(share=0.06)
    @given(st.data())
    def check(data):
        name = data.draw(st.sampled_from(sorted(known)), label="function")
        key = data.draw(st.sampled_from(sorted(known[name][1])), label="argument")
        if data.draw(st.booleans()):
            good.setdefault(name, result(name))
            forms = other_forms(known[name][1][key], is_example=key == "inputs")
            found = result(name, **{key: data.draw(st.sampled_from(forms))})
            if name not in ("load_encoder", "embed"):  # Of objects, that there is one.
                assert found == good[name], name
            counts[f"{name}: right"] += 1
            return
        try:
            result(name, **{key: data.draw(st.sampled_from(WRONG), label="value")})
            counts[f"{name}: done"] += 1
        except XLNetError as error:
            assert str(error) and len(str(error)) < 500 and "\n" not in str(error)
            counts[f"{name}: refused"] += 1

    check()
    report(counts)
