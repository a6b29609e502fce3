"""Plain strings and tuples become the examples that readers of files make."""

import math
import pathlib
import random

import numpy as np
import pandas as pd
import pytest

from official.xlnet.api.held_out import held_out
from official.xlnet.api.plain_examples import labelled_examples, unlabelled_examples
from official.xlnet.configs.task import TaskConfig
from official.xlnet.data.examples import TextExample
from official.xlnet.errors import DataError
from official.xlnet.tasks.question_answering.settings import QuestionExample
from official.xlnet.tasks.ranking.settings import RankingExample
from official.xlnet.tasks.token_classification.settings import TaggedExample


@pytest.mark.parametrize(
    ("kind", "rows", "examples", "columns"),
    [
        (
            *("classification", [("a b", "x"), ("", 3)]),
            [TextExample("1", ("a b",), "x"), TextExample("2", ("",), "3")],
            ("text",),
        ),
        (
            *("regression", [("a", "b", 2), ("c", "d", "0.5")]),
            [TextExample("1", ("a", "b"), 2.0), TextExample("2", ("c", "d"), 0.5)],
            ("text1", "text2"),
        ),
        ("multi_label", [("a", ["x", "y"])], [TextExample("1", ("a",), ("x", "y"))], ("text",)),
        (
            *("token_classification", [(["a", "b"], ["X", "O"])]),
            [TaggedExample("1", ("a", "b"), ("X", "O"))],
            (),
        ),
    ],
)
def test_rows_of_every_kind(kind, rows, examples, columns):
    task = TaskConfig(name=kind)
    assert labelled_examples(rows, task) == examples
    assert task.text_columns == columns


ROWS = [("a b", "x"), ("c", "3"), ("", "y")]
FORMS = {
    "lists": [list(row) for row in ROWS],
    "generator": (row for row in ROWS),
    "array": np.array(ROWS),
    "array of objects": np.array(ROWS, object),
    "table": pd.DataFrame(ROWS, columns=["sentence", "class"], index=[7, 7, 2]),
    "numbers": [(np.str_("a b"), "x"), ("c", np.int64(3)), ("", "y")],
}
TEXTS = ["a b", "", "c"]
SERIES = pd.Series(TEXTS, index=[4, 4, 0])
TEXT_FORMS = [iter(TEXTS), np.array(TEXTS), SERIES, SERIES.to_frame("t")]
TEXT_FORMS += [dict.fromkeys(TEXTS).keys()]


def test_rows_and_texts_in_other_forms():
    wanted = [TextExample(str(n), (text,), label) for n, (text, label) in enumerate(ROWS, 1)]
    for name, form in FORMS.items():
        assert labelled_examples(form, TaskConfig(name="classification")) == wanted, name
    wanted = [TextExample(str(n), (text,)) for n, text in enumerate(TEXTS, 1)]
    for form in TEXT_FORMS:
        assert unlabelled_examples(form, TaskConfig(name="classification")) == wanted, type(form)
    words = unlabelled_examples([["a", "b"], "c  d"], TaskConfig(name="token_classification"))
    assert words == [TaggedExample("1", ("a", "b")), TaggedExample("2", ("c", "d"))]
    task = TaskConfig(name="classification", text_columns=("a", "b"))
    assert unlabelled_examples([("x", "y")], task) == [TextExample("1", ("x", "y"))]
    with pytest.raises(DataError, match=r"example 1: expected 2 text\(s\) \(a, b\), got 1"):
        unlabelled_examples(["x"], task)


MISSING = (None, math.nan, np.nan, np.float32("nan"), pd.NA, pd.NaT, "", " ", b"x", ["x"])


@pytest.mark.parametrize("label", MISSING, ids=repr)
@pytest.mark.parametrize(
    "kind", ["classification", "regression", "multi_label", "token_classification"]
)
def test_labels_that_are_missing(kind, label):
    """None of them becomes a class of that name."""
    rows = {
        "classification": [("a", "x"), ("a", label)],
        "regression": [("a", 1), ("a", label)],
        "multi_label": [("a", ["x"]), ("a", ["x", label])],
        "token_classification": [(["a", "b"], ["O", "O"]), (["a", "b"], ["O", label])],
    }
    with pytest.raises(DataError, match=r"expected (a label, the name of a class|a number), got"):
        labelled_examples(rows[kind], TaskConfig(name=kind))


@pytest.mark.parametrize(
    ("kind", "rows", "error", "message"),
    [
        ("classification", "a", TypeError, "examples: expected a list, got str 'a'"),
        (
            "classification",
            ("a", "x"),
            TypeError,
            "got tuple .*; a tuple is one example with several",
        ),
        ("classification", ["a"], TypeError, "example 1: expected a tuple that ends in a label"),
        ("classification", [("a", "x"), ("a",)], DataError, "example 2: expected text and label"),
        ("classification", [("a", "x"), ("a", "b", "x")], DataError, r"example 2: expected 1 text"),
        ("classification", [(3, "x")], TypeError, "example 1: expected strings"),
        ("regression", [("a", "many")], DataError, "example 1: expected a number, got 'many'"),
        ("multi_label", [("a", "x")], DataError, "example 1: expected a list of classes"),
        ("multi_label", [("a", None)], DataError, "example 1: expected a list of classes"),
        ("classification", b"a", TypeError, "examples: expected a list, got bytes"),
        ("classification", 3, TypeError, "examples: expected a list, got int 3"),
        (
            "classification",
            pathlib.Path("a"),
            TypeError,
            "examples: expected a list, got PosixPath",
        ),
        ("classification", {"text": ["a"]}, TypeError, "examples: expected a list, got dict"),
        ("classification", [{"text": "a"}], TypeError, "example 1: expected a tuple that ends in"),
        ("classification", [(math.nan, "x")], TypeError, "example 1: expected strings"),
        ("token_classification", [("ab", "OO")], TypeError, "example 1: expected strings"),
        ("token_classification", [(["a"], "O")], TypeError, r"expected \(words, tags\)"),
        (
            "token_classification",
            [(["a"], ["O"] * 2)],
            DataError,
            "a tag for each of 1 words, got 2",
        ),
        (
            "question_answering",
            [("a", "x")],
            TypeError,
            "one of official.xlnet.tasks.question_answering.settings",
        ),
    ],
)
def test_wrong_rows_are_named(kind, rows, error, message):
    with pytest.raises(error, match=message):
        labelled_examples(rows, TaskConfig(name=kind))


def test_a_tenth_is_held_out():
    labels = [*random.Random(0).choices("xyz", k=97), "rare"]
    rows = [TextExample(str(n), ("a",), label) for n, label in enumerate(labels)]
    train, dev = held_out(rows, seed=3)
    assert len(dev) == 10 and sorted(train + dev, key=rows.index) == rows
    assert {row.label for row in train} == {"x", "y", "z", "rare"}
    assert held_out(rows, seed=3) == (train, dev) != held_out(rows, seed=4)
    numbers = [TextExample(str(n), ("a",), n / 7) for n in range(23)]
    assert [len(part) for part in held_out(numbers, 0)] == [21, 2]


def test_what_belongs_together_is_held_out_together():
    ranking = [RankingExample(f"d{n}", f"q{n % 11}", "q", "d", 1.0) for n in range(53)]
    questions = [QuestionExample(str(n), "q", f"paragraph {n % 11}") for n in range(53)]
    for rows, key in ((ranking, "query_id"), (questions, "context")):
        train, dev = held_out(rows, seed=1)
        groups = [{getattr(row, key) for row in part} for part in (train, dev)]
        assert len(groups[1]) == 1 and not groups[0] & groups[1]
