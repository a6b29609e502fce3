"""What is said of the data before the first step, and what `metrics.json` says of each class."""

import json

import numpy as np
import pytest
from sklearn import metrics

from official.xlnet.data.examples import TextExample
from official.xlnet.tasks.data_report import data_report, report_lines
from official.xlnet.tasks.reports import write_report
from official.xlnet.tasks.token_classification import TaggedExample
from tests.helpers.served_models import random_task


@pytest.fixture(scope="module")
def task():
    task = random_task("classification")[1]
    task.labels = ("b", "a")
    return task


def examples_of(rows):
    return [TextExample(str(n), (text,), label) for n, (text, label) in enumerate(rows, 1)]


def said(task, train, dev, **counts):
    report = data_report(task, examples_of(train), examples_of(dev), [3, 5, 5, 23], counts)
    json.dumps(report)
    return report, list(report_lines(report))


def test_the_report_counts_what_a_person_asks_for(task):
    train = [(f"text {n}", "ab"[n % 3 == 0]) for n in range(90)]
    train += [("text 1", "a"), ("two\nlines", "a"), (" text  1\n", "a")]
    longest = task.config.task.max_length
    report, lines = said(task, train, [("text 5", "a"), ("new", "a")], train_truncated=31)
    assert report["train"] == {"examples": 93, "copies": 1}
    assert report["dev"] == {"examples": 2, "also_in_train": 1}
    assert report["classes"] == {"a": [63, 2], "b": [30, 0]}
    assert report["texts"] == {"with_lost_white_space": 2, "equal_after_cleaning": 1}
    assert lines == [
        "train       93 examples, 1 of them copies",
        "dev         2 examples; 1 of its texts are in train; so few that metrics vary by chance",
        "classes     a 63, b 30; f1 refers to a",
        "warning     dev has no b",
        f"lengths     median 5 tokens, 99% 23, longest 23; 31 cut at {longest}",
        "texts       2 have line breaks, tabs or runs of spaces, each read as one space; a "
        "vocabulary of `xlnet vocab --keep_whitespace` keeps them",
        "texts       1 are equal to another one once they are cleaned",
    ]


@pytest.mark.parametrize("number", [1, 29, 30, 31])
def test_few_examples_are_a_warning(task, number):
    """An accuracy of one half has an interval of ±18% with 30 of them."""
    lines = said(task, [("a", "x"), ("b", "y")], [(f"text {n}", "x") for n in range(number)])[1]
    assert ("so few that metrics vary by chance" in lines[1]) == (1.96 * 0.5 / number**0.5 > 0.18)


@pytest.mark.parametrize(
    ("labels", "warning"),
    [
        (["Good", "good", "bad"], "'Good' and 'good' are different classes"),
        ([str(n / 2) for n in range(30)], "the classes are numbers; --task=regression predicts"),
        ([f"c{n}" for n in range(30)], None),
    ],
)
def test_classes_that_a_person_would_ask_about(task, labels, warning):
    rows = [(f"text {n}", label) for n, label in enumerate(labels)]
    warnings = [line for line in said(task, rows, rows)[1] if line.startswith("warning")]
    assert len(warnings) == bool(warning) and (warning or "") in "".join(warnings)


@pytest.mark.parametrize("number", [2, 3, 71])
def test_numbers_of_each_class(number, task, tmp_path):
    rng = np.random.default_rng(number)
    labels = [f"c{n}" for n in range(number)]
    true, predicted = rng.choice(labels, 211), rng.choice(labels, 211)
    confidence = rng.uniform(1 / number, 1, 211)
    examples = examples_of((f"text {n}", label) for n, label in enumerate(true.tolist()))
    predictions = [
        {"id": e.id, "label": label, "probabilities": dict.fromkeys(labels, 0.0) | {label: p}}
        for e, label, p in zip(examples, predicted.tolist(), confidence, strict=True)
    ]
    kept, task.labels = task.labels, tuple(labels)
    try:
        write_report(str(tmp_path), task, examples, predictions, {"accuracy": 0.5})
    finally:
        task.labels = kept
    found = json.loads((tmp_path / "metrics.json").read_text())
    each = metrics.precision_recall_fscore_support(true, predicted, labels=labels, zero_division=0)
    for n, label in enumerate(labels):
        expected = dict(
            zip(("precision", "recall", "f1", "support"), (x[n] for x in each), strict=True)
        )
        assert found["classes"][label] == pytest.approx(expected)
    matrix = metrics.confusion_matrix(true, predicted, labels=labels)
    assert found["confusion_matrix"] == {"true_by_predicted": matrix.tolist(), "labels": labels}
    expected = 0.0  # Of Guo et al. (2017), bin by bin.
    for low in np.arange(10) / 10:
        members = (confidence >= low) & (confidence < low + 0.1 + (low == 0.9))
        if members.any():
            gap = abs((true == predicted)[members].mean() - confidence[members].mean())
            expected += members.mean() * gap
    assert found["calibration_error"] == pytest.approx(expected)
    assert found.get("f1_is_of") == ("c1" if number == 2 else None)
    lines = (tmp_path / "predictions.jsonl").read_text().splitlines()
    assert [json.loads(line)["expected"] for line in lines] == true.tolist()


def test_numbers_of_each_kind_of_entity(tmp_path):
    tagging = random_task("token_classification")[1]
    tags = ("B-X", "I-X", "O", "B-Y")
    examples = [TaggedExample("1", ("a",) * 4, tags)]
    found = tagging.details(examples, [{"tags": ["B-X", "I-X", "O", "O"]}])["entities"]
    assert found["X"] == {"precision": 1.0, "recall": 1.0, "f1": 1.0, "support": 1}
    assert found["Y"] == {"precision": 0.0, "recall": 0.0, "f1": 0.0, "support": 1}


@pytest.mark.parametrize("name", ["token_classification", "multi_label"])
def test_f1_is_of_a_class_in_classification_alone(name):
    other = random_task(name)[1]
    other.labels = ("B-X", "O")
    rows = [TaggedExample("1", ("a",), ("O",)), TaggedExample("2", ("b",), ("B-X",))]
    if name == "multi_label":
        rows = [TextExample("1", ("a",), ("O",)), TextExample("2", ("b",), ("O", "B-X"))]
    lines = list(report_lines(data_report(other, rows, rows, [3, 4], {})))
    expected = {"token_classification": "O 1, B-X 1", "multi_label": "O 2, B-X 1"}
    assert lines[2] == f"classes     {expected[name]}"
