"""Ensembles: predictions of several models, combined by hand and by the library."""

import functools
import json
import math
import types

import numpy as np
import pytest

import official.xlnet as xlnet
from official.xlnet.configs.registry import TASKS
from official.xlnet.errors import ConfigError
from official.xlnet.inference.ensemble import Ensemble
from official.xlnet.inference.task_prediction import load_task, predict_examples
from tests.helpers.served_models import examples_of, random_task, save_task
from tests.helpers.task_corpora import task_config, write_table
from tests.helpers.world import command


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
        probabilities, *tables = [p["probabilities"] for p in (prediction, *members)]
        best = prediction.get("choice")
        if name == "classification":
            best = list(probabilities).index(prediction["label"])
            probabilities, *tables = [list(x.values()) for x in (probabilities, *tables)]
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
def test_the_threshold_of_questions_is_the_mean_of_the_members(folder):
    settings = {"query_length": 5, "window_stride": 5, "answer_length": 7}
    directories = []
    for seed, threshold in ((1, -0.5), (2, 1.5)):
        model, _ = random_task("question_answering", seed, **settings, null_threshold=threshold)
        directories.append(save_task(model, str(folder / f"qa-{seed}")))
    examples = examples_of("question_answering", 9)
    for prediction, example in zip(Ensemble(directories).predict(examples), examples, strict=True):
        assert prediction["answer"] in example.context
        is_null = prediction["no_answer_score"] > 0.5 or not prediction["n_best"]
        assert (prediction["start"] is None) == is_null


@pytest.mark.slow
def test_commands_and_functions_agree(folder):
    directories = saved(folder, "classification", 3)[1:]
    rows = [("bad", "the time of year"), ("good", "a new house"), ("fair", "of people and war")]
    data = write_table(folder / "data.tsv", ("label", "text"), rows)
    models = [f"--model={each}" for each in directories]
    output = folder / "predictions.jsonl"
    assert command("predict", *models, input=data, output=output)["rows"] == 3
    written = [json.loads(line) for line in output.read_text().splitlines()]
    found = xlnet.predict(directories, [text for _, text in rows])
    assert [p["probabilities"] for p in written] == [p["probabilities"] for p in found]
    metrics = command("evaluate", *models, data=data, output=folder / "report")
    right = [p["label"] == label for p, (label, _) in zip(found, rows, strict=True)]
    assert metrics["accuracy"] == pytest.approx(np.mean(right)) and metrics["models"] == 2
    assert (folder / "report/predictions.jsonl").read_text() == output.read_text()


@pytest.mark.slow
def test_members_must_be_of_one_task(folder):
    pair = dict(text_columns=("a", "b"))
    second = ("classification", pair)
    for number, (one, (name, settings), message) in enumerate(
        (
            (
                ("classification", {}),
                ("classification", {"labels": ("bad", "good", "fair")}),
                r"expected task\.labels = .*, as in .*, got",
            ),
            (second, ("classification", {"text_columns": ("b", "a")}), "the texts of a, b, in thi"),
            (second, ("classification", {"text_columns": ("a",)}), "the texts of a, b, in this or"),
            (("classification", {}), ("regression", {}), r"expected task\.name = 'classification'"),
            (("token_classification", {}), ("token_classification", {}), "expected one of classif"),
            (second, ("classification", {"text_columns": ("c", "d")}), None),
        )
    ):
        members = [
            save_task(random_task(kind, **task)[0], str(folder / f"{number}-{n}"))
            for n, (kind, task) in enumerate((one, (name, settings)))
        ]
        if message:
            with pytest.raises(ConfigError, match=message):
                Ensemble(members)
        else:
            Ensemble(members)
