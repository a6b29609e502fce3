"""Ensembles: predictions of several models, combined by hand and by the library."""

import functools
import json
import math
import types

import numpy as np
import pytest

import official.xlnet as xlnet
from official.xlnet import cli
from official.xlnet.configs.registry import TASKS
from official.xlnet.errors import ConfigError
from official.xlnet.inference.ensemble import Ensemble
from official.xlnet.inference.task_prediction import load_task, predict_examples
from tests.helpers.served_models import examples_of, random_task, save_task
from tests.helpers.task_corpora import task_config


def combine(members, name, **settings):
    tokenizer = types.SimpleNamespace(counts={})
    return TASKS[name](task_config(name=name, **settings), tokenizer).combine(members)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("ensemble")


@functools.cache
def saved(folder, name, number):
    """Directories of models with different weights; the last also reads shorter texts."""
    directories = []
    for seed in range(1, number + 1):
        model, _ = random_task(name, seed)
        if seed == number:
            model.config.task.max_length -= 3
        directories.append(save_task(model, str(folder / f"{name}-{seed}-of-{number}")))
    return directories


def softmax(x):
    return np.exp(x) / np.exp(x).sum()


@pytest.mark.parametrize(("name", "number"), [("classification", 3), ("multiple_choice", 2)])
def test_log_probabilities_are_averaged(folder, name, number):
    directories, examples = saved(folder, name, number), examples_of(name, 11)
    single = [list(predict_examples(*load_task(each), examples)) for each in directories]
    found = list(Ensemble(directories).predict(examples))
    assert [p["id"] for p in found] == [example.id for example in examples]
    labels = set()
    for prediction, *members in zip(found, *single, strict=True):
        tables = [p["probabilities"] for p in members]
        if name == "classification":
            assert list(prediction["probabilities"]) == ["bad", "fair", "good"]
            tables = [list(table.values()) for table in tables]
            probabilities = list(prediction["probabilities"].values())
            best = ["bad", "fair", "good"].index(prediction["label"])
        else:
            probabilities, best = prediction["probabilities"], prediction["choice"]
        expected = softmax(np.log(np.clip(tables, 1e-6, None)).mean(0))
        np.testing.assert_allclose(probabilities, expected, atol=2e-6)
        assert best == np.argmax(expected)
        labels.add(best)
    assert len(labels) > 1


def test_log_odds_of_labels_are_averaged():
    def of(good, bad):
        labels = [label for label, p in (("good", good), ("bad", bad)) if p > 0.5]
        return {"id": "7", "labels": labels, "probabilities": {"good": good, "bad": bad}}

    # Odds 9 · 1/4 · 4 = 9, whose cube root is 2.08; odds 1 · 0.25 · 0.25.
    found = combine(
        [of(0.9, 0.5), of(0.2, 0.2), of(0.8, 0.2)], "multi_label", labels=["good", "bad"]
    )
    odds = 9 ** (1 / 3)
    assert found["labels"] == ["good"] and found["id"] == "7"
    assert found["probabilities"]["good"] == pytest.approx(odds / (1 + odds), abs=1e-6)
    odds = (1 / 16) ** (1 / 3)
    assert found["probabilities"]["bad"] == pytest.approx(odds / (1 + odds), abs=1e-6)


def answers(no_answer, **spans):
    best = [
        {"text": text, "start": ord(text[0]) - ord("a"), "log_probability": math.log(p)}
        for text, p in spans.items()
    ]
    first = best[0] if best else {"text": "", "start": None}
    return {
        "id": "q",
        "answer": first["text"],
        "start": first["start"],
        "no_answer_score": no_answer,
        "best_span": first["text"],
        "n_best": best,
    }


def test_probabilities_of_answers_are_averaged():
    """No member's first choice wins: all give it something."""
    members = [answers(-4.0, ab=0.6, cd=0.3), answers(-1.0, ef=0.5, cd=0.4), answers(2.0, cd=0.2)]
    found = combine(members, "question_answering", n_best=2, null_threshold=-0.5)
    assert (found["answer"], found["start"]) == ("cd", 2)
    assert found["no_answer_score"] == -1.0
    assert [span["text"] for span in found["n_best"]] == ["cd", "ab"]
    assert found["n_best"][0]["log_probability"] == pytest.approx(math.log(0.3), abs=1e-6)
    assert found["n_best"][1]["log_probability"] == pytest.approx(math.log(0.2), abs=1e-6)
    none = combine(members, "question_answering", null_threshold=-1.5)
    assert (none["answer"], none["start"], none["best_span"]) == ("", None, "cd")
    empty = combine([answers(0.0)] * 2, "question_answering", null_threshold=5.0)
    assert (empty["answer"], empty["n_best"]) == ("", [])


@pytest.mark.slow
def test_questions_end_to_end(folder):
    """The threshold is the mean of the members'."""
    settings = {"query_length": 5, "window_stride": 5, "answer_length": 7}
    directories = []
    for seed, threshold in ((1, -0.5), (2, 1.5)):
        model, _ = random_task("question_answering", seed, **settings, null_threshold=threshold)
        directories.append(save_task(model, str(folder / f"qa-{seed}")))
    ensemble = Ensemble(directories)
    assert ensemble.task.config.task.null_threshold == 0.5
    examples = examples_of("question_answering", 9)
    for prediction, example in zip(ensemble.predict(examples), examples, strict=True):
        assert prediction["answer"] in example.context
        is_null = prediction["no_answer_score"] > 0.5 or not prediction["n_best"]
        assert (prediction["start"] is None) == is_null


@pytest.mark.slow
def test_commands_and_functions_agree(folder, capsys):
    directories = saved(folder, "classification", 3)[1:]
    data = folder / "data.tsv"
    rows = [("bad", "the time of year"), ("good", "a new house"), ("fair", "of people and war")]
    data.write_text("label\ttext\n" + "".join(f"{label}\t{text}\n" for label, text in rows))
    models = [f"--model={each}" for each in directories]
    output = folder / "predictions.jsonl"
    assert cli.main(["predict", *models, f"--input={data}", f"--output={output}"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["rows"] == 3
    written = [json.loads(line) for line in output.read_text().splitlines()]
    found = xlnet.predict(directories, [text for _, text in rows])
    assert [p["probabilities"] for p in written] == [p["probabilities"] for p in found]

    report = folder / "report"
    arguments = ["evaluate", *models, f"--data={data}", f"--output={report}"]
    assert cli.main(arguments) == 0
    metrics = json.loads(capsys.readouterr().out.splitlines()[-1])
    right = [p["label"] == label for p, (label, _) in zip(found, rows, strict=True)]
    assert metrics["accuracy"] == pytest.approx(np.mean(right)) and metrics["models"] == 2
    assert (report / "predictions.jsonl").read_text() == output.read_text()
    labelled = [(text, label) for label, text in rows]
    assert xlnet.evaluate(directories, labelled)["accuracy"] == metrics["accuracy"]


@pytest.mark.slow
def test_members_must_be_of_one_task(folder):
    first = saved(folder, "classification", 3)[0]
    other, _ = random_task("classification", labels=("bad", "good", "fair"))
    other = save_task(other, str(folder / "other"))
    with pytest.raises(ConfigError, match=r"other: expected task\.labels = .*, as in .*, got"):
        Ensemble([first, other])
    pairs = [
        save_task(
            random_task("classification", text_columns=names)[0], str(folder / "-".join(names))
        )
        for names in (("a", "b"), ("b", "a"), ("c", "d"), ("a",))
    ]
    for number in (1, 3):
        with pytest.raises(ConfigError, match="expected the texts of a, b, in this order, as in"):
            Ensemble([pairs[0], pairs[number]])
    Ensemble([pairs[0], pairs[2]])
    regression = saved(folder, "regression", 3)[0]
    with pytest.raises(ConfigError, match=r"expected task\.name = 'classification'"):
        Ensemble([first, regression])
    tagger, _ = random_task("token_classification")
    tagger = save_task(tagger, str(folder / "tagger"))
    with pytest.raises(ConfigError, match=r"task\.name: expected one of classification, .* got"):
        Ensemble([tagger, tagger])
    examples = examples_of("token_classification", 3)
    assert len(list(Ensemble([tagger]).predict(examples))) == len(examples)
