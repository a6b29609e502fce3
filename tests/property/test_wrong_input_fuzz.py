"""Wrong input by the hundred: what every verb promises, whatever is in a file or on a flag.

Of each case: the exit status is a documented one; a run that fails prints at most three lines, none
of them a traceback, in less than a minute; no file changes but the output; results are JSON without
NaN; and where a checksum guards a file, a run that succeeds gives the value that it gives on the
good file. Weights of strangers give finite numbers, or a sentence. `make fuzz N=10000` tries more.
"""

import contextlib
import json
import pathlib
import re
import shutil
import tempfile

import numpy as np
import pytest
import yaml
from hypothesis import strategies as st

from data_prep.tasks.task_data import read_task, stream_task
from official.xlnet.checkpoints.convert.variable_map import Weights
from official.xlnet.checkpoints.source import open_source
from official.xlnet.configs.registry import VERBS
from official.xlnet.configs.task import TaskConfig
from tests.helpers.checkpoints import (
    hf_of_tf1,
    random_values,
    read_hf,
    tf1_shapes,
    write_hf,
    write_tf1,
    write_torch,
)
from tests.helpers.wrong.changes import (
    KINDS,
    changed_arguments,
    changed_file,
)
from tests.helpers.wrong.promises import attempt, fuzz, run
from tests.helpers.wrong_input import digest

ANSWERS = [{"text": "water", "answer_start": 4}]
SQUAD = {"context": "the water", "qas": [{"id": "1", "question": "what?", "answers": ANSWERS}]}
TASK_FILES = {
    "classification.jsonl": '{"text": "the water", "label": "good"}\n{"text": "no", "label": 1}\n',
    "classification.tsv": "label\ttext\ngood\tthe water\nbad\tnot now\n",
    "classification.csv": 'label,text\ngood,"the, water"\nbad,not now\n',
    "regression.jsonl": '{"text": "the", "label": 1.5}\n{"text": "no", "label": -2}\n',
    "multi_label.jsonl": '{"text": "the", "label": ["a", "b"]}\n{"text": "no", "label": "a,c"}\n',
    "multiple_choice.jsonl": '{"text": "the", "choices": ["a", "b"], "label": 1}\n',
    "ranking.jsonl": '{"query": "q", "document": "d", "relevance": 1}\n',
    "token_classification.txt": "the O\nwater B-X\n\nnot O\n",
    "question_answering.json": json.dumps({"data": [{"paragraphs": [SQUAD]}]}),
}

# Names of the files that checksums guard: ours, and TensorFlow's of each value and block.
NONE, ALL = r"(?!)", ""
MODEL, TF1 = r"ckpt-.*\.(index|data.*)|spiece\.model$", r".*\.(index|data.*)"
# {what is read, and by what: (names of the files that checksums guard, command line)}.
CHEAP = {
    "text.txt": (NONE, "prepare --input=text.txt PREPARE"),
    "text.txt of vocab": (NONE, "vocab --input=text.txt --output=OUT --size=211"),
    "text.txt of extension": (
        NONE,
        "vocab --extend=language --input=text.txt --output=OUT --size=+9",
    ),
    "config.yaml": (NONE, "prepare --input=text.txt PREPARE"),
    "vocab": (NONE, "prepare --input=text.txt PREPARE"),
    "text.jsonl": (NONE, "prepare --input=text.txt --input=text.jsonl PREPARE"),
    "language": (NONE, "vocab --extend=language --input=text.txt --output=OUT --size=+9"),
    "language of convert": (NONE, "convert --source=language --output=OUT --to=hf"),
    "hf": (NONE, "convert --source=hf --output=OUT"),
    "tf1": (NONE, "convert --source=tf1 --output=OUT"),
}
if VERBS.is_listed("inspect records"):  # A project brings it.
    CHEAP["data"] = (NONE, "inspect records data --output=OUT.html")
# Those that take seconds.
EXPENSIVE = {
    "language of score": (MODEL, "score --model=language --text=the"),
    "hf of score": (NONE, "score --model=hf --text=the"),
    "texts.txt": (NONE, "score --model=language --input=texts.txt"),
    "language of generate": (MODEL, "generate --model=language --input=texts.txt"),
    "language of embed": (MODEL, "embed --model=language --input=texts.txt --output=OUT.npy"),
    "tf1 of embed": (TF1, "embed --model=tf1 --input=texts.txt --output=OUT.npy"),
    "rows.jsonl": (NONE, "embed --model=language --input=rows.jsonl --output=OUT.npy"),
    "data of evaluate": (ALL, "evaluate --model=language --data=data"),
    "dev.tsv": (NONE, "evaluate --model=task --data=dev.tsv"),
    "task": (MODEL, "predict --model=task --input=dev.tsv --output=OUT"),
    "task of export": (NONE, "export --model=task --output=OUT --buckets=23"),
    "data of pretrain": (
        ALL,
        "pretrain --config=config.yaml --data=data --output=OUT --steps=1",
    ),
    "recipe.yaml": (NONE, "finetune --config=recipe.yaml --vocab=vocab/spiece.model TUNE"),
    "language of finetune": (NONE, "finetune --init_from=language TUNE"),
}
WORDS = {
    "PREPARE": "--vocab=vocab --config=config.yaml --num_workers=1 --output=OUT",
    "TUNE": "--task=classification --set=num_steps=2 --set=warmup_steps=0 --train=train.tsv "
    "--dev=dev.tsv --output=OUT",
}


@pytest.fixture(scope="module")
def good(tmp_path_factory, vocab_file, world):
    """Good input of everything."""
    folder, values = tmp_path_factory.mktemp("fuzz"), random_values(tf1_shapes())
    write_hf(str(folder / "hf"), vocab_file, hf_of_tf1(values))
    write_tf1(str(folder / "tf1"), vocab_file, values)
    task = world.task("classification")
    for name, source in {
        "text.txt": world.text,
        "train.tsv": task.train,
        "dev.tsv": task.dev,
    }.items():
        shutil.copy(source, folder / name)
    folders = {"vocab": world.vocab, "data": world.data, "language": world.pretrained}
    for name, source in {**folders, "task": task.model}.items():
        # Of checkpoints the last, as a run falls back to an older one.
        unread = shutil.ignore_patterns("logs", "run", "*.jsonl", "*.png", "ckpt-54*")
        shutil.copytree(source, folder / name, ignore=unread)
    config = yaml.safe_load(pathlib.Path(world.config).read_text())
    tuning = config | {"task": {"max_length": 23, "num_buckets": 1}}
    documents = pathlib.Path(world.text).read_text().split("\n\n")
    losses = "".join(f'{{"step": {n}, "loss": {2.0 / n}}}\n' for n in range(1, 9))
    (folder / "run").mkdir()
    for name, text in {
        "config.yaml": yaml.safe_dump(config),
        "recipe.yaml": yaml.safe_dump(tuning),
        "text.jsonl": "".join(json.dumps({"text": document}) + "\n" for document in documents),
        "texts.txt": "the water was made first\nbut not now\n",
        "rows.jsonl": '{"text": "the water"}\n{"text": "", "id": 7}\n',
        "run/history.jsonl": losses,
    }.items():
        (folder / name).write_text(text)
    return folder


@pytest.fixture(
    params=[
        (CHEAP, 0.12),
        pytest.param((CHEAP, 0.35), marks=pytest.mark.nightly),
        pytest.param((EXPENSIVE, 0.1), marks=pytest.mark.nightly),
    ],
    ids=["cheap", "more cheap", "expensive"],
)
def verbs(request, good, world):
    """Verbs by what they read, with their share of the cases."""
    verbs, share = request.param
    if verbs is EXPENSIVE and not (good / "exported").exists():
        shutil.copytree(f"{world.export('classification')}/1", good / "exported")
    return verbs, share


@pytest.mark.slow
def test_the_good_commands_succeed(verbs, good, capfd):
    """Without this the others would say nothing."""
    for _, line in verbs[0].values():
        with copy_of(good):
            assert run(capfd, words(line))[0] == 0, line


@contextlib.contextmanager
def copy_of(folder):
    """The current directory is a copy of a folder, some levels deep: a flag may say `../../x`."""
    with tempfile.TemporaryDirectory() as root:
        here = shutil.copytree(folder, pathlib.Path(root, "a/b/in"))
        with contextlib.chdir(here):
            yield here


def words(line):
    for name, meaning in WORDS.items():
        line = line.replace(name, meaning)
    return line.replace("OUT", "../out").split()


def outcome(result, here):
    """What a run gave: its result without rates, and its output files, which are removed."""
    values = {name: value for name, value in result.items() if not name.endswith("_per_second")}
    files = {path.name: path.read_bytes() for path in here.parent.glob("out*") if path.is_file()}
    for name in files:
        (here.parent / name).unlink()
    shutil.rmtree(here.parent / "out", ignore_errors=True)
    return values, files


def test_files(verbs, good, capfd):
    """A file that a verb reads, made wrong."""
    (known, share), right = verbs, {}

    def check(draw):
        name = draw(st.sampled_from(sorted(known)), label="verb")
        guarded, line = known[name]
        with copy_of(good) as here:
            read = here / name.partition(" ")[0]
            path = draw(st.sampled_from(sorted(p for p in [read, *read.rglob("*")] if p.is_file())))
            is_guarded = re.match(guarded, path.name)
            if is_guarded and name not in right:
                right[name] = outcome(run(capfd, words(line))[1], here)
            kind = draw(st.sampled_from(["content"] * 2 * len(KINDS) + [*KINDS]), label="kind")
            content = draw(changed_file(path.name, path.read_bytes()))
            path.unlink()
            path.write_bytes(content) if kind == "content" else KINDS[kind](path)
            before = digest(here)
            status, result = run(capfd, words(line))
            assert digest(here) == before
            if status == 0 and is_guarded and kind == "content":
                assert outcome(result, here) == right[name]
        return f"{name}: status {status}"

    assert any(ending.endswith("status 0") for ending in fuzz(share, check))


def test_arguments(verbs, good, capfd):
    """A flag of a verb, made wrong."""
    known, share = verbs
    # Without one of its flags a fine-tuning is a large one.
    lines = sorted(line for _, line in known.values() if not line.startswith("finetune"))

    def check(draw):
        line = draw(st.sampled_from(lines))
        with copy_of(good) as here:
            before = digest(here)
            status, _ = run(capfd, draw(changed_arguments(words(line))))
            created = [path.name for path in here.iterdir() if not (good / path.name).exists()]
            for name in created:  # Where a flag may name a file to be written.
                shutil.rmtree(name) if pathlib.Path(name).is_dir() else pathlib.Path(name).unlink()
            assert digest(here) == before
        return f"{line.split()[0]}: status {status}"

    fuzz(share, check)


def test_weights(good, tmp_path):
    """A folder of a stranger: finite weights of the shapes that its configuration says, or not."""
    for form, source in (("hf", "hf"), ("torch", "hf"), ("tf1", "tf1")):
        shutil.copytree(good / source, tmp_path / form)
    write_torch(tmp_path / "torch/pytorch_model.bin", read_hf(good / "hf"))
    (tmp_path / "torch/model.safetensors").unlink()
    files = sorted(path for path in tmp_path.glob("*/*") if path.name != "spiece.model")

    def read(folder):
        source = open_source(str(folder))
        source.config.check()
        weights = Weights(source, "xlnet")
        for name, shape in weights.shapes.items():
            value = weights.read(name)
            assert value.shape == shape and np.isfinite(value).all(), name

    def check(draw):
        path = draw(st.sampled_from(files), label="file")
        content = path.read_bytes()
        path.write_bytes(draw(changed_file(path.name, content)))
        status, _ = attempt(lambda: read(path.parent))
        path.write_bytes(content)
        return f"{path.parent.name}: {status}"

    fuzz(0.3, check)


def test_task_files(tmp_path):
    """A file of a task, made wrong: examples and counts, or a sentence."""

    def check(draw):
        name = draw(st.sampled_from(sorted(TASK_FILES)), label="file")
        path, task = str(tmp_path / name), TaskConfig.create(name=name.partition(".")[0])
        pathlib.Path(path).write_bytes(draw(changed_file(name, TASK_FILES[name].encode())))
        status, read = attempt(lambda: read_task(path, task)[0])
        _, streamed = attempt(lambda: list(stream_task(path, task)))
        for example in [*(read or ()), *(streamed or ())]:
            repr(example).encode()  # Nothing that a later file cannot hold.
        return status

    fuzz(0.5, check)
