"""Folders that transformers 5 and 4 write are read here, and ours there, by each one's defaults."""

import json
import os
import pathlib
import subprocess
import sys
import sysconfig

import numpy as np
import pytest

from official import xlnet
from official.xlnet.inference.task_prediction import load_task
from official.xlnet.tasks.question_answering.settings import QuestionExample
from tests.helpers.world import command

pytest.importorskip("torch")
pytest.importorskip("transformers")

pytestmark = pytest.mark.slow
SCRIPT = pathlib.Path(__file__).with_name("transformers_folders.py")
PYTHONS = {"5": sys.executable, "4": os.environ.get("XLNET_HF4_PYTHON", "")}
SINGLE = [
    [
        "The water (may) find its way.",
        "now",
        '1,000 people, and zuzu.more of the [E1]them - well-known "<new> 3.5',
    ]
]
PAIRS = [["The water may find its way.", "now"], ["of the time", "(zuzu) and people[E1] there"]]
CHOICES = [["the people of the"] * 3, ["water", "now and then they", "find it there"]]
TEXTS = {
    "encoder": SINGLE,
    "lm": SINGLE,
    "classification": SINGLE,
    "pairs": PAIRS,
    "half": SINGLE,
    "multi_label": SINGLE,
    "regression": SINGLE,
    "token_classification": SINGLE,
    "multiple_choice": CHOICES,
    "question_answering": PAIRS,
    "simple_answers": PAIRS,
}
# What transformers' `pipeline` is called with.
PREDICTED = ("classification", "pairs", "half", "multi_label", "regression")
CONVERTED = (*PREDICTED, "encoder", "lm", "token_classification", "multiple_choice")
CONVERTED += ("simple_answers",)
LABELS = ["bad", "fair", "good"]


@pytest.fixture(scope="module", params=PYTHONS)
def version(request):
    if not os.path.isfile(PYTHONS[request.param]):
        pytest.skip("XLNET_HF4_PYTHON names no interpreter")
    return request.param


def run(version, folder, **job):
    """What the script answers in an environment with a version of transformers."""
    folder.mkdir()
    job |= {"torch": sysconfig.get_path("purelib"), "output": str(folder), "texts": TEXTS}
    (folder / "job.json").write_text(json.dumps(job))
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    done = subprocess.run(
        [PYTHONS[version], SCRIPT, folder / "job.json"],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "answer.json").read_text())


@pytest.fixture(scope="module")
def theirs(version, world, tmp_path_factory):
    """(folder with a folder of each kind, what HF computes with it)"""
    folder = tmp_path_factory.mktemp("theirs") / "made"
    return folder, run(version, folder, vocab=world.vocab, vocab_size=211)


@pytest.fixture(scope="module")
def read_back(version, theirs, tmp_path_factory):
    """What HF computes with folders that came from there and went back."""
    root = tmp_path_factory.mktemp("ours")
    for kind in CONVERTED:
        report = command("convert", source=f"{theirs[0]}/{kind}", output=f"{root}/{kind}")
        assert report["left_over"] == [], kind
        command("convert", source=f"{root}/{kind}", output=f"{root}/{kind}_hf", to="hf")
    models = {kind: f"{root}/{kind}_hf" for kind in CONVERTED}
    return run(version, root / "read", models=models)


def test_nothing_that_hf_writes_by_default_is_unknown(theirs, caplog):
    for kind in TEXTS:
        xlnet.load_config(f"{theirs[0]}/{kind}")
    assert [r.getMessage() for r in caplog.records if "does not use" in r.getMessage()] == []


def close(found, expected):
    np.testing.assert_allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize("kind", TEXTS)
def test_vectors_of_tokens(theirs, kind):
    """Also says that ids, segments and padding are theirs."""
    folder, answers = theirs
    inputs = xlnet.load_tokenizer(f"{folder}/{kind}")(*TEXTS[kind])
    content = xlnet.load_encoder(f"{folder}/{kind}")(inputs)["content"].numpy()
    close(content[~inputs["is_padding"]], answers[kind]["content"])


def test_logits_of_the_next_token(theirs):
    """Those of a target that sees all but itself."""
    folder, answers = theirs
    model = xlnet.load_pretrainer(f"{folder}/lm")
    inputs = xlnet.load_tokenizer(f"{folder}/lm")(*SINGLE)
    rows, length = inputs["token_ids"].shape
    inputs["target_positions"] = np.full([rows, 1], length - 1, np.int32)
    inputs["order"] = np.tile(np.arange(length, dtype=np.int32) // (length - 1), [rows, 1])
    close(model(inputs)["logits"], answers["lm"]["logits"])


def expected_rows(kind, logits):
    logits = np.array(logits)
    if kind == "multi_label":
        return 1 / (1 + np.exp(-logits))
    if kind == "regression":
        return logits
    return np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)


@pytest.mark.parametrize("kind", PREDICTED)
def test_predictions(theirs, tmp_path, kind):
    folder, answers = theirs
    examples = [row if len(row) > 1 else row[0] for row in zip(*TEXTS[kind], strict=True)]
    rows = xlnet.predict(f"{folder}/{kind}", examples)
    found = [
        [row["score"]] if kind == "regression" else list(row["probabilities"].values())
        for row in rows
    ]
    close(found, expected_rows(kind, answers[kind]["logits"]))
    if kind in ("classification", "pairs", "multi_label"):
        assert list(rows[0]["probabilities"]) == LABELS


def test_tokens_and_choices(theirs):
    folder, answers = theirs
    for kind in ("token_classification", "multiple_choice"):
        inputs = xlnet.load_tokenizer(f"{folder}/{kind}")(*TEXTS[kind])
        model, _ = load_task(f"{folder}/{kind}")
        if kind == "multiple_choice":
            [found] = model({name: value[None] for name, value in inputs.items()})["logits"]
            close(found, answers[kind]["logits"][0])
        else:
            outputs = model({name: value[:, None] for name, value in inputs.items()})
            close(outputs["logits"].numpy()[~inputs["is_padding"]], answers[kind]["logits"])


def test_simple_answers(theirs):
    """The best span of all pairs of what HF's logits say of the paragraph, with CLS beside it."""
    folder, answers = theirs
    tokenizer = xlnet.load_tokenizer(f"{folder}/simple_answers")
    rows = [
        {"id": str(n), "question": question, "context": context}
        for n, (context, question) in enumerate(zip(*TEXTS["simple_answers"], strict=True))
    ]
    found = xlnet.predict(f"{folder}/simple_answers", [QuestionExample(**row) for row in rows])
    logits = answers["simple_answers"]["spans"]
    for row, starts, ends, answer in zip(rows, *logits, found, strict=True):
        ids, places = tokenizer.encode_with_offsets(row["context"])
        length = len(ids) + len(tokenizer.encode(row["question"])) + 3
        logs = np.array([starts, ends])[:, -length:]
        logs = logs[:, [*range(len(ids)), -1]]
        logs -= np.log(np.exp(logs).sum(axis=1, keepdims=True))
        places_of = range(len(ids))
        score, i, j = max((logs[0, i] + logs[1, j], i, j) for i in places_of for j in places_of[i:])
        assert answer["best_span"] == row["context"][places[i][0] : places[j][1]]
        close(answer["n_best"][0]["log_probability"], score)


@pytest.mark.parametrize("kind", CONVERTED)
def test_ours_there(theirs, read_back, kind):
    """`pipeline` and `from_pretrained`, with defaults only, say what the source said."""
    expected, found = theirs[1][kind], read_back[kind]
    if kind not in PREDICTED:
        assert found["info"] == {}
        for name in expected.keys() - {"info"}:
            close(found[name], expected[name])
        return
    expected = expected_rows(kind, expected["logits"])
    assert len(found) == len(expected)
    for row, values in zip(found, expected, strict=True):
        close(sorted(row.values()), sorted(values))


@pytest.mark.parametrize("kind", ["classification", "pairs", "multi_label"])
def test_labels_there(theirs, read_back, kind):
    for row, logits in zip(read_back[kind], theirs[1][kind]["logits"], strict=True):
        assert max(row, key=row.get) == LABELS[int(np.argmax(logits))]
        assert sorted(row) == LABELS
