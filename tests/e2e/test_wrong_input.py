"""Wrong input, verb by verb: one sentence and status 2, whatever is wrong.

The numbers are those of a list of some 70 attempts that once ended otherwise.
"""

import json
import math
import os
import random
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time

import pytest

from data_prep.corpus.vocabulary import train_vocabulary
from data_prep.tasks.task_data import read_task
from official.xlnet import cli
from official.xlnet.configs.task import TaskConfig
from official.xlnet.files.locks import LOCK_FILE, only_writer
from official.xlnet.runtime.history import read_history
from tests.helpers.checkpoints import hf_of_tf1, random_values, tf1_shapes, write_hf
from tests.helpers.corpora import as_text, random_documents
from tests.helpers.wrong_input import digest, make_world, refused, run, strict_json

# Lines that a verb may say when all goes well.
SAID = re.compile(
    r"^training on [\d,]+ characters: |^[\d.]+ M parameters, |^step \d+/\d+  loss "
    r"|: texts are read from |^[\d,]+/[\d,]+ texts|^learning rate |: model [\d.]+, bag of words "
)
ODD = "o [1]* é?={x},y"  # A name of a folder, with characters that mean something elsewhere.


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    return make_world(tmp_path_factory.mktemp("world"))


def pretrain(world, model_dir, *arguments, config=None):
    config = config or world / "config.yaml"
    data = f"--data={world / 'data'}"
    return ["pretrain", f"--config={config}", data, f"--model_dir={model_dir}", *arguments]


def finetune(world, output, *arguments, task="classification", train=None, dev=None):
    return [
        *("finetune", f"--task={task}", f"--train={train or world / 'train.tsv'}"),
        *(f"--dev={dev or world / 'dev.tsv'}", f"--config={world / 'recipe.yaml'}"),
        *(f"--vocab={world / 'vocab/spiece.model'}", f"--output={output}", *arguments),
    ]


def leave_lock(folder):
    """A lock of a process that was killed: it does not count."""
    folder.mkdir(exist_ok=True)
    dead = {"host": socket.gethostname(), "pid": 2**22 + 1, "started": "5"}
    (folder / LOCK_FILE).write_text(json.dumps(dead))


@pytest.fixture(scope="module")
def trained(world, tmp_path_factory):
    """A pre-training run that stopped half-way."""
    model_dir = tmp_path_factory.mktemp("trained") / "m"
    assert cli.main(pretrain(world, model_dir, "--steps=2")) == 0
    return model_dir


@pytest.fixture(scope="module")
def tuned(world, tmp_path_factory):
    """A fine-tuning run."""
    output = tmp_path_factory.mktemp("tuned") / "t"
    assert cli.main(finetune(world, output)) == 0
    return output


# 1. Characters of patterns in paths.


@pytest.mark.slow
def test_every_verb_works_under_any_path(world, trained, tuned, tmp_path, capfd):
    """What is written under an odd path equals what is written under a plain one.

    A lock of a killed process is in the way of each kind of output.
    """
    compared = ("continue", "evaluate", "score", "evaluate task")
    results, said = {}, []
    shutil.copytree(trained, tmp_path / "plain/model")
    shutil.copytree(tuned, tmp_path / "plain/task")
    for name in ("plain", ODD):
        here = tmp_path / name
        here.mkdir(exist_ok=True)
        for part in ("data", "text.txt", "vocab", "config.yaml", "train.tsv", "dev.tsv"):
            copy = shutil.copytree if (world / part).is_dir() else shutil.copy
            copy(world / part, here / part)
        for part in ("recipe.yaml", "texts.txt"):
            shutil.copy(world / part, here / part)
        model, task = here / "model", here / "task"
        # The flag is a list; a name with a comma is put in quotes.
        text = f'--input="{here / "text.txt"}"'
        verbs = {
            "vocab": ["vocab", text, f"--output={here / 'v'}", "--size=150"],
            "prepare": [
                *("prepare", text, f"--vocab={here / 'vocab'}", "--num_workers=1"),
                *(f"--config={here / 'config.yaml'}", f"--output={here / 'prepared'}"),
            ],
            "pretrain": [*pretrain(here, model), "--steps=2"],
            "continue": pretrain(here, model, "--set=keep_checkpoints=1"),
            "evaluate": ["evaluate", f"--model={model}", f"--data={here / 'data'}"],
            "score": ["score", f"--model={model}", f"--input={here / 'texts.txt'}"],
            "generate": ["generate", f"--model={model}", "--text=the", "--num_tokens=2"],
            "convert": ["convert", f"--source={model}", f"--output={here / 'hf'}", "--to=hf"],
            "extend": [
                *("vocab", f"--extend={model}", text, "--size=+9"),
                f"--output={here / 'extended'}",
            ],
            "convert extended": [
                *("convert", f"--source={here / 'extended'}", f"--output={here / 'e'}", "--to=tf1")
            ],
            "convert back": ["convert", f"--source={here / 'hf'}", f"--output={here / 'again'}"],
            "convert tf1": ["convert", f"--source={model}", f"--output={here / 't'}", "--to=tf1"],
            "convert from tf1": ["convert", f"--source={here / 't'}", f"--output={here / 'x'}"],
            "finetune": finetune(here, task),
            "finetune from": [
                *("finetune", "--task=classification", f"--init_from={model}"),
                *(f"--train={here / 'train.tsv'}", f"--dev={here / 'dev.tsv'}"),
                *(f"--output={here / 'task2'}", "--set=max_length=23", "--set=num_steps=2"),
                "--set=num_buckets=1",
                *("--set=warmup_steps=0", "--set=training.batch_size=7"),
            ],
            "evaluate task": ["evaluate", f"--model={task}", f"--data={here / 'dev.tsv'}"],
            "predict": [
                *("predict", f"--model={task}", f"--input={here / 'dev.tsv'}"),
                f"--output={here / 'predictions.jsonl'}",
            ],
            "export": ["export", f"--model={task}", f"--output={here / 'exported'}"],
            "predict on beam": [
                *("predict", f"--saved_model={here / 'exported/1'}", "--batch_size=5"),
                *(f"--input={world / 'text.jsonl'}", f"--output={here / 'bulk'}"),
            ],
            "embed": [
                *("embed", f"--model={model}", f"--input={here / 'texts.txt'}"),
                f"--output={here / 'v.npy'}",
            ],
            "inspect records": [
                *("inspect", "records", here / "data"),
                f"--output={here / 'window.html'}",
            ],
            "inspect attention": [
                *("inspect", "attention", f"--model={model}", "--text=the"),
                f"--output={here / 'attention.html'}",
            ],
            "inspect runs": ["inspect", "runs", model, task, f"--output={here / 'runs.png'}"],
        }
        locked = {"vocab": here / "v", "prepare": here / "prepared", "pretrain": model}
        locked |= {"finetune": task, "export": here / "exported"}
        for verb, arguments in verbs.items():
            if name == "plain" and verb not in compared:
                continue
            if name == ODD and verb in locked:
                leave_lock(locked[verb])
            outcome = run(capfd, *arguments)
            assert outcome.status == 0, (verb, name, outcome.err)
            assert not locked.get(verb, here).joinpath(LOCK_FILE).exists()
            said += [(verb, line) for line in outcome.err.splitlines() if not SAID.search(line)]
            results.setdefault(verb, []).append(outcome.result)
        steps = sorted(path.name for path in model.glob("ckpt-*.json"))
        assert steps == ["ckpt-4.json"]
        assert json.loads((model / "ckpt-4.json").read_text())["files"]
        assert len(list(model.glob("ckpt-*.index"))) == 1
        assert len(list((task / "run").glob("*.index"))) == 1
    assert said == []  # Lines that the user of a verb cannot use, or new ones, for `SAID`.
    plain, odd = tmp_path / "plain", tmp_path / ODD
    for folder, steps in (("model", 4), ("task", 3)):
        losses = [[x["loss"] for x in read_history(str(p / folder))] for p in (plain, odd)]
        assert losses[0] == losses[1] and len(losses[0]) == steps
    assert (plain / "task/metrics.json").read_bytes() == (odd / "task/metrics.json").read_bytes()
    for verb in compared:
        plain, odd = results[verb]
        for key in ("loss", "log_likelihood", "accuracy"):
            assert plain.get(key) == odd.get(key), verb


# 2. Numbers that are none.


def test_grades_and_labels_that_are_no_numbers(world, tmp_path, capfd):
    rows = ["query\tdocument\trelevance"]
    rows += [f"q{n % 3}\tthe water {n}\t{n % 2}" for n in range(12)] + ["q1\tthe first\tnan"]
    (tmp_path / "r.tsv").write_text("\n".join(rows) + "\n")
    table = tmp_path / "r.tsv"
    files = {"train": table, "dev": table}
    unknown = "--set=data.max_unknown=1"  # The vocabulary has no digits.
    ranking = finetune(world, tmp_path / "o", unknown, task="ranking", **files)
    assert "1 of 13 rows cannot be used (malformed_rows 1)" in refused(run(capfd, *ranking))
    examples, counts = read_task(str(table), TaskConfig(name="ranking"), 0.1)
    assert len(examples) == 12 and counts == {"malformed_rows": 1}
    rows = ["label\ttext", "nan\tthe", "inf\tof", "1e300\tand", "5\tto", "3\tin"]
    (tmp_path / "s.tsv").write_text("\n".join(rows) + "\n")
    table = tmp_path / "s.tsv"
    files = {"train": table, "dev": table}
    regression = finetune(world, tmp_path / "p", task="regression", **files)
    outcome = run(capfd, *regression, "--max_lost=0.6")
    assert outcome.status == 0, outcome.err
    assert outcome.result["train_malformed_rows"] == outcome.result["dev_malformed_rows"] == 3
    for path in tmp_path.rglob("*.json*"):
        for line in path.read_text().splitlines() if path.suffix == ".jsonl" else ():
            strict_json(line)


# 3. Sizes.


@pytest.mark.parametrize(
    "sizes",
    [
        {"n_layer": 10**9},
        {"n_layer": 10**8, "d_inner": 1},
        {"d_inner": 10**11},
        {"vocab_size": 10**14},
        {"d_model": 10**9, "n_head": 2, "d_head": 5 * 10**8},
    ],
)
def test_sizes_that_no_machine_has(sizes, vocab_file, tmp_path, capfd):
    source = tmp_path / "hf"
    write_hf(str(source), vocab_file, hf_of_tf1(random_values(tf1_shapes())))
    tree = json.loads((source / "config.json").read_text())
    (source / "config.json").write_text(json.dumps(tree | sizes))
    start = time.monotonic()
    refused(run(capfd, "convert", f"--source={source}", f"--output={tmp_path / 'o'}"))
    assert time.monotonic() - start < 20
    assert not (tmp_path / "o").exists()


@pytest.mark.parametrize(
    "setting",
    ["num_layers=100000000", "d_inner=2000000000", "training.batch_size=2000000000"],
)
def test_runs_that_no_machine_holds(setting, world, tmp_path, capfd):
    refused(run(capfd, *pretrain(world, tmp_path / "p", f"--set={setting}")))
    refused(run(capfd, *finetune(world, tmp_path / "f", f"--set={setting}")))
    assert os.listdir(tmp_path) == []


# 4. Ranges: tests/unit/configs/test_validation.py has them all.


def test_every_number_on_the_command_line_has_bounds():
    from absl import flags

    for verb in cli._verbs():
        module = cli.load_verb(verb)
        for name in module.FLAGS:
            flag = module.FLAGS[name]
            if isinstance(flag.parser, flags.IntegerParser | flags.FloatParser):
                assert None not in (flag.parser.lower_bound, flag.parser.upper_bound), (verb, name)


def test_numbers_on_the_command_line(world, capfd):
    generate = ["generate", f"--model={world / 'language'}", "--text=the"]
    for flag in ("temperature=nan", "temperature=-1", "num_tokens=-1", f"top_k={'9' * 40}"):
        assert flag.partition("=")[0] in refused(run(capfd, *generate, f"--{flag}"))


# 5. The vocabulary of another model.


@pytest.fixture(scope="module")
def other_vocabulary(tmp_path_factory):
    """A vocabulary of the same size, of words that are written backwards."""
    folder = tmp_path_factory.mktemp("other")
    text = as_text(random_documents(random.Random(5), 300))
    (folder / "text.txt").write_text(text[::-1], encoding="utf-8")
    train_vocabulary([str(folder / "text.txt")], str(folder), 211)
    return folder / "spiece.model"


def test_the_vocabulary_of_another_model_is_noticed(other_vocabulary, world, tmp_path, capfd):
    for model in ("language", "task"):
        shutil.copytree(world / model, tmp_path / model)
        shutil.copy(other_vocabulary, tmp_path / model / "spiece.model")
    score = ["score", f"--model={tmp_path / 'language'}", "--text=the water"]
    predict = ["predict", f"--input={world / 'dev.tsv'}", f"--output={tmp_path / 'o.jsonl'}"]
    for arguments in (score, [*predict, f"--model={tmp_path / 'task'}"]):
        assert "is another model's" in refused(run(capfd, *arguments))
    # A directory of before there were records still loads.
    os.remove(tmp_path / "language/spiece.model.sha256")
    assert run(capfd, *score).status == 0


@pytest.mark.parametrize("verb", ["vocab", "prepare"])
@pytest.mark.parametrize("owner", ["language", "data", "hf"])
def test_the_vocabulary_of_a_model_or_a_data_set_is_not_replaced(
    verb, owner, other_vocabulary, world, tmp_path, capfd
):
    folder = tmp_path / owner
    if owner == "hf":
        folder.mkdir()
        (folder / "config.json").write_text("{}")
        shutil.copy(world / "vocab/spiece.model", folder)
    else:
        shutil.copytree(world / owner, folder)
    before = digest(folder)
    flags = {
        "vocab": ["--size=100"],
        "prepare": [f"--vocab={other_vocabulary}", f"--config={world / 'config.yaml'}"],
    }
    texts = f"--input={world / 'text.txt'}"
    sentence = refused(run(capfd, verb, texts, f"--output={folder}", *flags[verb]))
    assert "choose another" in sentence
    assert digest(folder) == before


def test_a_run_goes_on_with_its_own_vocabulary_only(
    other_vocabulary, world, tuned, tmp_path, capfd
):
    output = shutil.copytree(tuned, tmp_path / "o")
    before = digest(output)
    again = finetune(world, output, f"--vocab={other_vocabulary}")
    assert "expected the vocabulary of the run" in refused(run(capfd, *again))
    assert digest(output) == before


# 6. Characters that cannot be written.


_IN_ENCODINGS = """
import sys
from official.xlnet import cli
_, model, *encodings = sys.argv
for encoding in encodings:
    sys.stdout.reconfigure(encoding=encoding)
    sys.stderr.reconfigure(encoding=encoding)
    for path, expected in ((model, 0), ("时间", 2)):
        sys.argv = ["xlnet", "score", f"--model={path}", "--text=naïve 时间"]
        status = cli.main()
        assert status == expected, (encoding, status)
"""


@pytest.mark.slow
def test_output_in_any_encoding(world):
    encodings = ["ascii", "latin-1", "utf-8"]
    done = subprocess.run(
        [sys.executable, "-c", _IN_ENCODINGS, str(world / "language"), *encodings],
        env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONPATH": os.getcwd()},
        capture_output=True,
        check=True,
    )
    lines = done.stdout.splitlines()
    assert len(lines) == 2 * len(encodings)
    for encoding, row in zip(encodings, lines[::2], strict=True):
        assert strict_json(row.decode(encoding))["text"] == "naïve 时间"
    warning, sentence = b"are <unk>", b"expected a model directory"
    lines = done.stderr.splitlines()
    assert len(lines) == 2 * len(encodings)
    assert all(warning in line for line in lines[::2])
    assert all(sentence in line for line in lines[1::2])


# 7. Task files.

GOOD = '{"text": "the water", "label": "good"}\n{"text": "but not", "label": "bad"}\n'
DEEP = "[" * 100_000


@pytest.mark.parametrize(
    "line",
    [
        '{"label": "good"}',
        '{"text": null, "label": "good"}',
        '{"text": ["the"], "label": "good"}',
        '{"text": "the", "label": ["good"]}',
        '{"text": "the", "label": null}',
        '{"text": "the", "label": {}}',
        '{"text": "the", "label": 1e999}',
        f'{{"text": {DEEP}, "label": "good"}}',
        '{"text": "the", "label": NaN}',
        '{"text": "the", "label": "good"',
        "[1]",
        "\0",
    ],
)
def test_a_wrong_line_is_counted_in_training_and_refused_in_prediction(
    line, world, tmp_path, capfd
):
    (tmp_path / "t.jsonl").write_text(GOOD + line + "\n" + GOOD)
    from data_prep.tasks.task_data import stream_task
    from official.xlnet.errors import DataError

    examples, counts = read_task(str(tmp_path / "t.jsonl"), TaskConfig(name="classification"), 1.0)
    assert [example.label for example in examples] == ["good", "bad"] * 2
    assert counts == {"missing_labels" if "null}" in line else "malformed_rows": 1}
    if '"text": "the"' not in line or not line.endswith("}"):
        task = TaskConfig(name="classification", text_columns=("text",))
        with pytest.raises(DataError, match=r"t\.jsonl, (row|line) 3"):
            list(stream_task(str(tmp_path / "t.jsonl"), task))


# 8. Configurations: tests/unit/files/test_yaml_files.py has the rest.


@pytest.mark.parametrize(
    "setting",
    [
        "learning_rate=[",
        "learning_rate=!!python/object/apply:os.system ['false']",
        "learning_rate=2020-13-45",
        f"learning_rate={'9' * 5000}",
        f"learning_rate={'[' * 5000}",
        "learning_rate={1: 2}",
        "learning_rate={null: 2}",
    ],
)
def test_overrides_that_are_no_values(setting, world, tmp_path, capfd):
    sentence = refused(run(capfd, *pretrain(world, tmp_path / "p", f"--set={setting}")))
    assert "learning_rate" in sentence


# 9. `prepare` and `vocab`.


def test_text_of_nothing_but_spaces(world, tmp_path, capfd):
    spaces = [chr(c) for c in range(0x110000) if chr(c).isspace()]
    spaces += ["\u200b", "\u2060", "\ufeff", "\u00ad", "\u180e", "\u2800", "\u3164", "\u034f"]
    for number, text in enumerate(["".join(spaces), *spaces, "\u200b \u2060\n\n\u3164"]):
        (tmp_path / "t.txt").write_text(text, encoding="utf-8")
        vocab = ["vocab", f"--input={tmp_path / 't.txt'}", "--size=40"]
        refused(run(capfd, *vocab, f"--output={tmp_path / f'v{number}'}"))


def test_what_cannot_be_extended(world, tmp_path, capfd):
    extend = ["vocab", f"--input={world / 'text.txt'}", "--size=+9"]
    output = f"--output={tmp_path / 'v'}"
    for model, sentence in (
        (world / "vocab", "no model found"),
        (tmp_path / "none", "expected the directory of a model"),
        ("", "expected a path that is not empty"),
    ):
        assert sentence in refused(run(capfd, *extend, f"--extend={model}", output))
    extend += [f"--extend={world / 'language'}"]
    assert "the configuration of the model" in refused(run(capfd, *extend, output, "--lowercase"))
    assert "an empty folder" in refused(run(capfd, *extend, f"--output={world / 'task'}"))
    assert "not enough text" in refused(run(capfd, *extend, output, "--size=+999999"))
    assert os.listdir(tmp_path) == []


# 10. Metadata.


@pytest.mark.parametrize(
    "record",
    ["[1]", "{}", "null", '{"files": 5}', '{"files": {"a": 1}}', '{"files": [1]}', "\0", DEEP, "1"],
)
def test_wrong_records_of_checkpoints(record, trained, world, tmp_path, capfd):
    model_dir = shutil.copytree(trained, tmp_path / "m")
    for path in model_dir.glob("ckpt-*.json"):
        path.write_text(record)
    evaluate = ["evaluate", f"--model={model_dir}", f"--data={world / 'data'}"]
    for arguments in (evaluate, pretrain(world, model_dir)):
        assert "no valid checkpoint" in refused(run(capfd, *arguments))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("windows_per_lane", 0),
        ("windows_per_lane", "5"),
        ("windows_per_lane", None),
        ("num_lanes", -1),
        ("num_lanes", 5.5),
        ("files", []),
        ("files", {"a": 5}),
        ("files", {"../../a": "b"}),
        ("windows", 10**6),
        ("seq_len", "29"),
        ("seq_len", 0),
        ("reuse_len", [11]),
        ("bidirectional", 1),
        ("vocab_sha256", None),
        ("vocab_size", True),
        ("splits", []),
        ("splits", {"train": 5}),
        ("source", 5),
        ("compression", "ZIP"),
        ("extra", 1),
    ],
)
def test_wrong_manifests(key, value, world, tmp_path, capfd):
    shutil.copytree(world / "data", tmp_path / "data")
    path = tmp_path / "data/manifest.json"
    tree = json.loads(path.read_text())
    if key in tree["splits"]["train"]:
        tree["splits"]["train"][key] = value
    else:
        tree[key] = value
    path.write_text(json.dumps(tree))
    outcome = run(capfd, *pretrain(tmp_path, tmp_path / "m", config=world / "config.yaml"))
    assert key in refused(outcome)
    assert not (tmp_path / "m").exists()


# 11. Noise, and who is blamed.


def test_a_changed_configuration_is_one_sentence(world, tmp_path, capfd):
    shutil.copytree(world / "task", tmp_path / "m")
    path = tmp_path / "m/config.yaml"
    path.write_text(path.read_text().replace("d_inner: 31", "d_inner: 37"))
    predict = ["predict", f"--model={tmp_path / 'm'}", f"--input={world / 'dev.tsv'}"]
    refused(run(capfd, *predict, f"--output={tmp_path / 'p'}"))
    path.write_text(path.read_text().replace("num_layers: 1", "num_layers: 2"))
    refused(run(capfd, *predict, f"--output={tmp_path / 'p'}"))


def test_divergence_has_one_status(world, tmp_path, capfd):
    outcome = run(capfd, *finetune(world, tmp_path / "o", "--set=learning_rate=1e38"))
    assert outcome.status == 70 and "expected a finite loss" in outcome.err, outcome.err
    assert all(math.isfinite(line["loss"]) for line in read_history(str(tmp_path / "o")))


@pytest.mark.parametrize("to", ["hf", "tf1", "xlnet"])
def test_convert_on_a_full_disk_names_what_cannot_be_written(to, world, tmp_path, capfd):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        arguments = [f"--source={world / 'language'}", f"--output={tmp_path / 'o'}", f"--to={to}"]
        outcome = run(capfd, "convert", *arguments)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, ignored)
    sentence = refused(outcome)
    assert str(tmp_path / "o") in sentence and str(world) not in sentence
    assert os.listdir(tmp_path) == []


# 12. Two at once.


@pytest.mark.parametrize("verb", ["vocab", "pretrain", "finetune", "prepare", "export"])
def test_a_second_writer_is_refused(verb, world, tmp_path, capfd):
    output = tmp_path / "o"
    arguments = {
        "vocab": ["vocab", f"--input={world / 'text.txt'}", "--size=200", f"--output={output}"],
        "pretrain": pretrain(world, output),
        "finetune": finetune(world, output),
        "prepare": [
            *("prepare", f"--input={world / 'text.txt'}", f"--vocab={world / 'vocab'}"),
            *(f"--config={world / 'config.yaml'}", f"--output={output}", "--num_workers=1"),
        ],
        "export": ["export", f"--model={world / 'task'}", f"--output={output}"],
    }[verb]
    with only_writer(str(output)):
        sentence = refused(run(capfd, *arguments))
        assert f"process {os.getpid()} on" in sentence
        assert os.listdir(output) == [LOCK_FILE]


# 13. Limits of the address space.
