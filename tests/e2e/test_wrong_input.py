"""Wrong input, verb by verb: one sentence and status 2, and nothing is written or replaced."""

import json
import math
import os
import random
import re
import shutil
import socket
import subprocess
import sys

import pytest

from official.xlnet.api.vocab import train_vocabulary
from official.xlnet.commands.declarations import declaration
from official.xlnet.configs.registry import VERBS as DECLARED
from official.xlnet.files.locks import LOCK_FILE, only_writer
from official.xlnet.files.schema import Range
from official.xlnet.runtime.history import read_history
from tests.helpers.checkpoints import hf_of_tf1, random_values, tf1_shapes, write_hf
from tests.helpers.corpora import as_text, random_documents
from tests.helpers.world import TASK_SETTINGS, with_last_values
from tests.helpers.wrong_input import digest, full_disk, refused, run, strict_json

# Lines that a verb may say when all goes well.
SAID = re.compile(
    r"^training on [\d,]+ characters: |^this CPU has |tokens$"
    r"|^(train|dev|classes|lengths|settings) |^[\d.]+ M parameters, |^step \d+/\d+  loss "
    r"|: texts are read from |^texts?: |^step \d+/\d+  dev: |: model [\d.]+, bag of words "
    r"|^these texts are short for the model, |^done: "
)
ODD = "o [1]* é?={x},y"  # A name of a folder, with characters that mean something elsewhere.
VERBS = {
    "vocab": 'vocab|--input="TEXT"|--size=150|--output=OUT',
    "extend": 'vocab|--extend=LANGUAGE|--input="TEXT"|--size=+9|--output=OUT',
    "prepare": 'prepare|--input="TEXT"|--vocab=VOCAB|--config=CONFIG|--output=OUT|--num_workers=1',
    "pretrain": 'pretrain|--config=CONFIG|--data="DATA"|--output=OUT',
    "evaluate": "evaluate|--model=LANGUAGE|--data=DATA",
    "score": "score|--model=LANGUAGE|--text=the water",
    "generate": "generate|--model=LANGUAGE|--text=the|--num_tokens=2",
    "embed": "embed|--model=LANGUAGE|--input=TEXT|--output=OUT.npy",
    "convert": "convert|--source=LANGUAGE|--output=OUT|--to=hf",
    "finetune": "finetune|--task=classification|--train=TRAIN|--dev=DEV|--init_from=LANGUAGE"
    + "".join(f"|--set={setting}" for setting in (*TASK_SETTINGS, "num_steps=2", "warmup_steps=0"))
    + "|--output=OUT",
    "predict": "predict|--model=TASK|--input=DEV|--output=OUT.jsonl",
    "export": "export|--model=TASK|--output=OUT",
}
if DECLARED.is_listed("inspect records"):  # A project brings it.
    VERBS["inspect"] = "inspect|records|DATA|--output=OUT.html"


@pytest.fixture
def line(world, tmp_path):
    """A function from a verb, further flags, and paths in the place of good ones, to a line."""
    task = world.task("classification")
    good = {"TEXT": world.text, "VOCAB": world.vocab, "CONFIG": world.config, "DATA": world.data}
    good |= {"LANGUAGE": world.pretrained, "TASK": task.model, "TRAIN": task.train}
    good |= {"DEV": task.dev, "OUT": tmp_path / "out"}

    def line_of(verb, *further, **changed):
        words = "|".join([VERBS[verb], *further])
        for name, path in (good | changed).items():
            words = words.replace(name, str(path))
        return with_last_values(words.split("|"))

    return line_of


YAML = ("[", "!!python/object/apply:os.system ['false']", "2020-13-45", "9" * 5000, "[" * 5000)
JSON_LINES = ("score", "generate", "predict")
SENTENCES = [
    *(("pretrain", f"--set=learning_rate={value}", "learning_rate") for value in (*YAML, "{1: 2}")),
    ("pretrain", "--set=num_layers=100000000", "num_layers: expected in [1, 1000]"),
    *((verb, "--output=OUT.tsv", "expected a file of JSON lines") for verb in JSON_LINES),
    ("generate", "--temperature=nan", "temperature"),
    ("generate", "--temperature=-1", "temperature"),
    ("generate", "--num_tokens=-1", "num_tokens"),
    ("generate", f"--top_k={'9' * 40}", "top_k"),
    ("extend", "--extend=VOCAB", "no model found"),
    ("extend", "--extend=OUT/none", "expected the directory of a model"),
    ("extend", "--extend=", "expected a path that is not empty"),
    ("extend", "--lowercase", "the configuration of the model"),
    ("extend", "--output=TASK", "an empty folder"),
    ("extend", "--size=+999999", "not enough text"),
    ("embed", "--output=OUT.csv", "expected a file ending in .npy, .jsonl, .parquet"),
    ("embed", "--input=/dev/null", "expected a regular file, got a device"),
    ("embed", "--layer=9", "layer: expected in [-2, 1], got 9"),
    ("embed", "--max_length=2", "input length: expected at least 3"),
]


@pytest.mark.parametrize(("verb", "flag", "sentence"), SENTENCES)
def test_wrong_flags(verb, flag, sentence, line, tmp_path, capfd):
    assert sentence in refused(run(capfd, *line(verb, flag)))
    assert os.listdir(tmp_path) == []


def test_every_number_on_the_command_line_has_bounds():
    for verb in DECLARED.names():
        declared = declaration(verb)
        for name, parameter in declared.parameters.items():
            is_number = parameter.value_type in (int, float) and parameter.container is None
            has_bounds = any(isinstance(rule, Range) for rule in parameter.rules)
            assert has_bounds or not is_number or (verb, name) == ("vocab", "size"), (verb, name)


HUGE = [
    {"n_layer": 10**9},
    {"n_layer": 10**8, "d_inner": 1},
    {"d_inner": 10**11},
    {"vocab_size": 10**14},
    {"d_model": 10**9, "n_head": 2, "d_head": 5 * 10**8},
]


def test_sizes_that_no_machine_has(vocab_file, line, tmp_path, capfd):
    source = tmp_path / "hf"
    write_hf(str(source), vocab_file, hf_of_tf1(random_values(tf1_shapes())))
    tree = json.loads((source / "config.json").read_text())
    for sizes in HUGE:
        (source / "config.json").write_text(json.dumps(tree | sizes))
        refused(run(capfd, *line("convert", LANGUAGE=source)))
    assert os.listdir(tmp_path) == ["hf"]


@pytest.fixture(scope="module")
def other_vocabulary(tmp_path_factory):
    """A vocabulary of the same size, of words that are written backwards."""
    folder = tmp_path_factory.mktemp("other")
    text = as_text(random_documents(random.Random(5), 300))
    (folder / "text.txt").write_text(text[::-1], encoding="utf-8")
    train_vocabulary([str(folder / "text.txt")], str(folder), 211)
    return folder / "spiece.model"


@pytest.mark.parametrize(("verb", "name"), [("score", "LANGUAGE"), ("predict", "TASK")])
def test_the_vocabulary_of_another_model_is_noticed(
    verb, name, other_vocabulary, line, world, tmp_path, capfd
):
    model = world.pretrained if name == "LANGUAGE" else world.task("classification").model
    shutil.copytree(model, tmp_path / "m")
    shutil.copy(other_vocabulary, tmp_path / "m/spiece.model")
    sentence = refused(run(capfd, *line(verb, **{name: tmp_path / "m"})))
    assert "is another model's" in sentence


@pytest.mark.parametrize("owner", ["a model", "a data set", "an HF folder", "a run"])
def test_the_vocabulary_of_a_model_or_a_data_set_is_not_replaced(
    owner, other_vocabulary, line, world, tmp_path, capfd
):
    folder = tmp_path / "m"
    owned = {"a model": world.pretrained, "a data set": world.data, "an HF folder": world.vocab}
    shutil.copytree(owned.get(owner, world.task("classification").model), folder)
    if owner == "an HF folder":
        (folder / "config.json").write_text("{}")
    before = digest(folder)
    verbs = ["finetune"] if owner == "a run" else ["vocab", "prepare"]
    for verb in verbs:
        flag = [] if verb == "vocab" else [f"--vocab={other_vocabulary}"]
        sentence = refused(run(capfd, *line(verb, *flag, OUT=folder)))
        assert "choose another" in sentence or "vocabulary" in sentence
        assert digest(folder) == before


def test_text_of_nothing_but_spaces(line, tmp_path, capfd):
    spaces = [chr(c) for c in range(0x110000) if chr(c).isspace()]
    spaces += ["\u200b", "\u2060", "\ufeff", "\u00ad", "\u180e", "\u2800", "\u3164", "\u034f"]
    for text in ["".join(spaces), *spaces, "\u200b \u2060\n\n\u3164"]:
        (tmp_path / "t.txt").write_text(text, encoding="utf-8")
        refused(run(capfd, *line("vocab", TEXT=tmp_path / "t.txt")))
    assert os.listdir(tmp_path) == ["t.txt"]


MANIFEST = [
    ("windows_per_lane", (0, "5", None)),
    ("num_lanes", (-1, 5.5)),
    ("files", ([], {"a": 5}, {"../../a": "b"})),
    ("windows", (10**6,)),
    ("seq_len", ("29", 0)),
    ("reuse_len", ([11],)),
    ("bidirectional", (1,)),
    ("vocab_sha256", (None,)),
    ("vocab_size", (True,)),
    ("splits", ([], {"train": 5})),
    ("source", (5,)),
    ("compression", ("ZIP",)),
    ("extra", (1,)),
]


@pytest.mark.parametrize(("key", "values"), MANIFEST)
def test_wrong_manifests(key, values, line, world, tmp_path, capfd):
    data = shutil.copytree(world.data, tmp_path / "data")
    text = (data / "manifest.json").read_text()
    for value in values:
        tree = json.loads(text)
        train = tree["splits"]["train"]
        (train if key in train else tree)[key] = value
        (data / "manifest.json").write_text(json.dumps(tree))
        assert key in refused(run(capfd, *line("pretrain", DATA=data)))
    assert os.listdir(tmp_path) == ["data"]


def test_a_changed_configuration_is_one_sentence(line, world, tmp_path, capfd):
    model = shutil.copytree(world.task("classification").model, tmp_path / "m")
    text = (model / "config.yaml").read_text()
    for key in ("d_inner", "num_layers"):
        (model / "config.yaml").write_text(re.sub(rf"{key}: \d+", f"{key}: 3", text))
        refused(run(capfd, *line("predict", TASK=model)))


@pytest.mark.usefixtures("eager")
def test_divergence_has_one_status(line, tmp_path, capfd):
    outcome = run(capfd, *line("finetune", "--set=learning_rate=1e38"))
    assert outcome.status == 70 and "expected a finite loss" in outcome.err, outcome.err
    assert all(math.isfinite(row["loss"]) for row in read_history(str(tmp_path / "out")))


@pytest.mark.parametrize("to", ["hf", "tf1", "xlnet"])
def test_convert_on_a_full_disk_names_what_cannot_be_written(to, line, world, tmp_path, capfd):
    with full_disk(1000):
        outcome = run(capfd, *line("convert", f"--to={to}"))
    sentence = refused(outcome)
    assert str(tmp_path / "out") in sentence and world.pretrained not in sentence
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("verb", ["vocab", "pretrain", "finetune", "prepare", "export"])
def test_a_second_writer_is_refused(verb, line, tmp_path, capfd):
    with only_writer(str(tmp_path / "out")):
        sentence = refused(run(capfd, *line(verb)))
        assert "another process is writing there" in sentence
        assert os.listdir(tmp_path / "out") == [LOCK_FILE]


@pytest.mark.slow
def test_every_verb_works_under_any_path(line, world, tmp_path, capfd):
    """A lock of a killed process is in the way of each output, and does not count."""
    here = tmp_path / ODD
    task = world.task("classification")
    sources = {"TEXT": world.text, "VOCAB": world.vocab, "CONFIG": world.config}
    sources |= {"DATA": world.data, "TRAIN": task.train, "DEV": task.dev}
    names = {}
    for name, source in sources.items():
        copy = shutil.copytree if os.path.isdir(source) else shutil.copy
        os.makedirs(here / name.lower())
        names[name] = here / name.lower() / os.path.basename(source)
        copy(source, names[name])
    names["ROWS"] = here / "rows.jsonl"
    names["ROWS"].write_text('{"text": "the water"}\n')
    made = {"pretrain": "LANGUAGE", "finetune": "TASK", "export": "EXPORTED"}
    dead = {"host": socket.gethostname(), "pid": 2**22 + 1, "started": "5"}
    said, results = [], {}
    for verb in VERBS:
        out = names["OUT"] = here / f"out {verb}"
        if verb in ("vocab", "prepare", *made):
            out.mkdir()
            (out / LOCK_FILE).write_text(json.dumps(dead))
        outcome = run(capfd, *line(verb, *(["--steps=2"] if verb == "pretrain" else []), **names))
        assert outcome.status == 0, (verb, outcome.err)
        assert not (out / LOCK_FILE).exists()
        said += [(verb, text) for text in outcome.err.splitlines() if not SAID.search(text)]
        results[verb] = outcome.result
        if verb in made:
            names[made[verb]] = out / "1" if verb == "export" else out
    assert said == []  # Lines that the user of a verb cannot use, or new ones, for `SAID`.
    plain = shutil.copytree(here / "out pretrain", tmp_path / "plain")
    found = run(capfd, *line("evaluate", LANGUAGE=plain)).result
    assert results["evaluate"]["loss"] == found["loss"]


_IN_ENCODINGS = """
import sys
from official.xlnet import cli
from official.xlnet.files.schema import Range
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
    program = [sys.executable, "-c", _IN_ENCODINGS, world.pretrained, *encodings]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONPATH": os.getcwd()}
    done = subprocess.run(program, env=environment, capture_output=True, check=True)
    rows, errors = done.stdout.splitlines()[::2], done.stderr.splitlines()
    errors = [error for error in errors if b"are <unk>" in error or error.startswith(b"xlnet")]
    for encoding, row in zip(encodings, rows, strict=True):
        assert strict_json(row.decode(encoding))["text"] == "naïve 时间"
    assert [b"are <unk>" in error for error in errors] == [True, False] * 3
    assert [b"expected a model directory" in error for error in errors] == [False, True] * 3
