"""Plain strings and tuples become the examples that readers of files make."""

import pytest

from official.xlnet.api.plain_examples import labelled_examples, unlabelled_examples
from official.xlnet.configs.task import TaskConfig
from official.xlnet.data.examples import QuestionExample, TaggedExample, TextExample
from official.xlnet.errors import DataError


def test_classes_and_numbers():
    task = TaskConfig(name="classification")
    assert labelled_examples([("a b", "x"), ("", 3)], task) == [
        TextExample("1", ("a b",), "x"),
        TextExample("2", ("",), "3"),
    ]
    assert task.text_columns == ("text",)
    task = TaskConfig(name="regression")
    assert labelled_examples([("a", "b", 2), ("c", "d", "0.5")], task) == [
        TextExample("1", ("a", "b"), 2.0),
        TextExample("2", ("c", "d"), 0.5),
    ]
    assert task.text_columns == ("text1", "text2")
    task = TaskConfig(name="multi_label")
    (example,) = labelled_examples([("a", ["x", "y"])], task)
    assert example.label == ("x", "y")


def test_words_and_tags():
    task = TaskConfig(name="token_classification")
    expected = TaggedExample("1", ("a", "b"), ("X", "O"))
    assert labelled_examples([(["a", "b"], ["X", "O"])], task) == [expected]
    found = unlabelled_examples([["a", "b"], "c  d"], task)
    assert found == [TaggedExample("1", ("a", "b")), TaggedExample("2", ("c", "d"))]


def test_examples_are_taken_as_they_are():
    example = QuestionExample("q", "who?", "they", (("they", 0),))
    task = TaskConfig(name="question_answering")
    assert labelled_examples([example], task) == unlabelled_examples([example], task) == [example]


def test_inputs_to_predict():
    task = TaskConfig(name="classification", text_columns=("a", "b"))
    found = unlabelled_examples([("x", "y"), ("", "z")], task)
    assert found == [TextExample("1", ("x", "y")), TextExample("2", ("", "z"))]
    with pytest.raises(DataError, match=r"example 1: expected 2 text\(s\) \(a, b\), got 1"):
        unlabelled_examples(["x"], task)


@pytest.mark.parametrize(
    ("kind", "rows", "error", "message"),
    [
        ("classification", "a", TypeError, "examples: expected a list, got str 'a'"),
        ("classification", ("a", "x"), TypeError, "examples: expected a list, got tuple"),
        ("classification", ["a"], TypeError, "example 1: expected a tuple that ends in a label"),
        ("classification", [("a", "x"), ("a",)], DataError, "example 2: expected text and label"),
        ("classification", [("a", "x"), ("a", "b", "x")], DataError, r"example 2: expected 1 text"),
        ("classification", [(3, "x")], TypeError, "example 1: expected strings"),
        ("regression", [("a", "many")], DataError, "example 1: expected a number, got 'many'"),
        ("multi_label", [("a", "x")], DataError, "example 1: expected a list of classes"),
        ("question_answering", [("a", "x")], TypeError, "one of official.xlnet.data.examples"),
    ],
)
def test_wrong_rows_are_named(kind, rows, error, message):
    with pytest.raises(error, match=message):
        labelled_examples(rows, TaskConfig(name=kind))
