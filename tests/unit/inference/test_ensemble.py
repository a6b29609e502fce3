"""Ensembles: predictions of several models, combined by hand and by the library."""

import contextlib
import dataclasses
import json
import math
import types

import numpy as np
import pytest

import official.xlnet as xlnet
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.registry import TASKS
from official.xlnet.errors import ConfigError
from official.xlnet.inference.ensemble import Ensemble
from official.xlnet.inference.task_prediction import load_task, predict_examples
from official.xlnet.tasks.task import Task
from tests.helpers.served_models import examples_of, random_task, save_task
from tests.helpers.task_corpora import task_config, write_table
from tests.helpers.world import command

pytestmark = pytest.mark.usefixtures("eager")


def combine(members, name, **settings):
    tokenizer = types.SimpleNamespace(counts={})
    return TASKS[name](task_config(name=name, **settings), tokenizer).combine(members)


@pytest.fixture(scope="module")
def directories(tmp_path_factory):
    """Of two classifiers with different weights; the second one reads shorter texts."""
    folder = tmp_path_factory.mktemp("ensemble")
    models = [random_task("classification", seed)[0] for seed in (1, 2)]
    models[1].config.task.max_length -= 3
    return [save_task(model, str(folder / str(n))) for n, model in enumerate(models)]


def softmax(x):
    return np.exp(x) / np.exp(x).sum()


def test_log_probabilities_are_averaged(directories):
    examples = examples_of("classification", 11)
    single = [list(predict_examples(*load_task(each), examples)) for each in directories]
    found = list(Ensemble(directories).predict(examples))
    assert [p["id"] for p in found] == [example.id for example in examples]
    for prediction, *members in zip(found, *single, strict=True):
        tables = [[*p["probabilities"].values()] for p in members]
        expected = softmax(np.log(tables).mean(axis=0))
        np.testing.assert_allclose([*prediction["probabilities"].values()], expected, atol=2e-6)
        assert prediction["label"] == [*prediction["probabilities"]][np.argmax(expected)]
    assert len({prediction["label"] for prediction in found}) > 1


def test_an_evaluation_is_reported_and_a_task_that_cannot_combine_says_which_can(
    directories, tmp_path, monkeypatch
):
    labels = XLNetConfig.load(directories[0]).task.labels
    examples = [
        dataclasses.replace(example, label=labels[number % 2])
        for number, example in enumerate(examples_of("classification", 11))
    ]
    metrics = Ensemble(directories).evaluate(examples, str(tmp_path))
    written = json.loads((tmp_path / "metrics.json").read_text())
    assert {name: written[name] for name in metrics} == metrics
    assert metrics["models"] == 2 and (tmp_path / "predictions.jsonl").exists()
    monkeypatch.setattr(TASKS["classification"], "combine", Task.combine)
    with pytest.raises(ConfigError, match=r"expected one of .*regression.* for several") as error:
        Ensemble(directories)
    assert "classification," not in str(error.value)


def test_a_choice_that_one_member_excludes_is_nearly_excluded():
    tables = [0.6, 0.4, 0.0], [0.2, 0.3, 0.5]
    found = combine(
        [{"id": "7", "choice": np.argmax(table), "probabilities": table} for table in tables],
        "multiple_choice",
    )
    expected = softmax(np.log(np.clip(tables, 1e-6, None)).mean(axis=0))
    np.testing.assert_allclose(found["probabilities"], expected, atol=2e-6)
    assert (found["id"], found["choice"]) == ("7", 0)


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
def test_the_threshold_of_questions_is_the_mean_of_the_members(tmp_path):
    settings = {"query_length": 5, "window_stride": 5, "answer_length": 7}
    directories = []
    for seed, threshold in ((1, -0.5), (2, 1.5)):
        model, _ = random_task("question_answering", seed, **settings, null_threshold=threshold)
        directories.append(save_task(model, str(tmp_path / str(seed))))
    examples = examples_of("question_answering", 9)
    for prediction, example in zip(Ensemble(directories).predict(examples), examples, strict=True):
        assert prediction["answer"] in example.context
        is_null = prediction["no_answer_score"] > 0.5 or not prediction["n_best"]
        assert (prediction["start"] is None) == is_null


@pytest.mark.slow
def test_commands_and_functions_agree(directories, tmp_path):
    rows = [("bad", "the time of year"), ("good", "a new house"), ("fair", "of people and war")]
    data = write_table(tmp_path / "data.tsv", ("label", "text"), rows)
    models = [f"--model={each}" for each in directories]
    output = tmp_path / "predictions.jsonl"
    assert command("predict", *models, input=data, output=output)["rows"] == 3
    written = [json.loads(line) for line in output.read_text().splitlines()]
    found = xlnet.predict(directories, [text for _, text in rows])
    assert [p["probabilities"] for p in written] == [p["probabilities"] for p in found]
    assert command("evaluate", *models, data=data, output=tmp_path / "report")["models"] == 2
    reported = (tmp_path / "report/predictions.jsonl").read_text().splitlines()
    expected = [{**p, "expected": label} for p, (label, _) in zip(written, rows, strict=True)]
    assert [json.loads(line) for line in reported] == expected


CLASSES = ("classification", {})
PAIRS = ("classification", {"text_columns": ("a", "b")})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("one", "other", "message"),
    [
        (
            CLASSES,
            ("classification", {"labels": ("bad", "good", "fair")}),
            r"expected task\.labels = .*, as in .*, got",
        ),
        (PAIRS, ("classification", {"text_columns": ("b", "a")}), "the texts of a, b, in this or"),
        (PAIRS, ("classification", {"text_columns": ("a",)}), "the texts of a, b, in this order"),
        (CLASSES, ("regression", {}), r"expected task\.name = 'classification'"),
        (("token_classification", {}), ("token_classification", {}), "expected one of classif"),
        (PAIRS, ("classification", {"text_columns": ("c", "d")}), None),
    ],
)
def test_members_must_be_of_one_task(one, other, message, tmp_path):
    members = [
        save_task(random_task(kind, **task)[0], str(tmp_path / str(number)))
        for number, (kind, task) in enumerate((one, other))
    ]
    refuses = pytest.raises(ConfigError, match=message) if message else contextlib.nullcontext()
    with refuses:
        Ensemble(members)
