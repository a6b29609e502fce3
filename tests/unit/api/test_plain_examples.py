"""Plain strings and tuples become the examples that readers of files make."""

import decimal
import math
import pathlib
import random

import numpy as np
import pandas as pd
import pytest

from data_prep.tasks.task_data import read_task, stream_task
from official.xlnet.configs.task import TaskConfig
from official.xlnet.data.examples import TextExample
from official.xlnet.errors import DataError
from official.xlnet.jobs.held_out import held_out
from official.xlnet.tasks.multiple_choice import ChoiceExample
from official.xlnet.tasks.question_answering import QuestionExample
from official.xlnet.tasks.ranking import RankingExample
from official.xlnet.tasks.token_classification import TaggedExample


@pytest.mark.parametrize(
    ("kind", "rows", "examples", "columns"),
    [
        (
            *("classification", [("a b", "x"), ("", 3)]),
            [TextExample("1", ("a b",), "x"), TextExample("2", ("",), "3")],
            ("text",),
        ),
        (
            *("regression", [("a", "b", decimal.Decimal(2)), ("c", "d", "0.5")]),
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
    task = TaskConfig.create(name=kind)
    assert read_task(rows, task)[0] == examples
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
        assert read_task(form, TaskConfig.create(name="classification"))[0] == wanted, name
    wanted = [TextExample(str(n), (text,)) for n, text in enumerate(TEXTS, 1)]
    for form in TEXT_FORMS:
        assert list(stream_task(form, TaskConfig.create(name="classification"))) == wanted, type(
            form
        )
    words = list(stream_task([["a", "b"], "c  d"], TaskConfig.create(name="token_classification")))
    assert words == [TaggedExample("1", ("a", "b")), TaggedExample("2", ("c", "d"))]
    task = TaskConfig.create(name="classification", text_columns=("a", "b"))
    assert list(stream_task([("x", "y")], task)) == [TextExample("1", ("x", "y"))]
    with pytest.raises(DataError, match=r"row 1: expected 2 text\(s\) \(a, b\), got 1"):
        list(stream_task(["x"], task))


MISSING = (None, math.nan, np.nan, np.float32("nan"), pd.NA, pd.NaT, "", " ")
WRONG = (b"\xff", [["x"]])


@pytest.mark.parametrize("label", [*MISSING, *WRONG], ids=repr)
@pytest.mark.parametrize(
    "kind", ["classification", "regression", "multi_label", "token_classification"]
)
def test_labels_that_are_missing(kind, label):
    """None of them becomes a class of that name; up to a share, their rows are left out."""
    rows = {
        "classification": [("a", "x"), ("a", label)],
        "regression": [("a", 1), ("a", label)],
        "multi_label": [("a", ["x"]), ("a", ["x", label])],
        "token_classification": [(["a", "b"], ["O", "O"]), (["a", "b"], ["O", label])],
    }
    with pytest.raises(DataError, match=r"1 of 2 rows cannot be used .*row 2: expected"):
        read_task(rows[kind], TaskConfig.create(name=kind))
    found, counts = read_task(rows[kind], TaskConfig.create(name=kind), max_lost=0.5)
    assert len(found) == 1
    is_wrong = any(label is each for each in WRONG)
    assert counts == {"malformed_rows" if is_wrong else "missing_labels": 1}


@pytest.mark.parametrize(
    ("kind", "rows", "error", "message"),
    [
        ("classification", ("a", "x"), TypeError, "got tuple .*; a tuple is one example with"),
        ("classification", {"a", "x"}, TypeError, "got set .*; a set has no order"),
        ("classification", ["a"], TypeError, "row 1: expected a tuple that ends in a label"),
        ("classification", [("a", "x"), ("a",)], DataError, "row 2: expected 1 text"),
        ("classification", [("a", "x"), ("a", "b", "x")], DataError, "row 2: expected 1 text"),
        ("regression", [("a", "many")], DataError, "row 1: expected a number .*, got 'many'"),
        ("classification", b"a", TypeError, "expected a list of rows or a table, got bytes"),
        ("classification", 3, TypeError, "expected a list of rows or a table, got int 3"),
        ("classification", pathlib.Path("a"), TypeError, "a table, got PosixPath"),
        ("classification", {"text": ["a"]}, DataError, "expected a column 'label', got text"),
        ("classification", {"a": ["a"], "label": []}, DataError, "equal length, got a: 1, label"),
        ("classification", {"text": "a", "label": "b"}, TypeError, "values are texts; pass a list"),
        ("classification", {"train": iter([])}, TypeError, "of splits .train.; pass one"),
        ("classification", [{"text": "a"}], DataError, "expected a column 'label', got text"),
        ("classification", [(math.nan, "x")], DataError, "row 1: expected text in 'text', got"),
        ("token_classification", [(3, "OO")], DataError, "row 1: expected a list in 'words'"),
        ("token_classification", [(["a"], "O")], DataError, "row 1: expected a list of tags in"),
        ("token_classification", [(["a"], ["O"] * 2)], DataError, "a tag for each of 1 words"),
        *(
            (kind, [("a", "x")], TypeError, f"row 1: expected an example of {kind} or a mapping")
            for kind in ("question_answering", "ranking", "multiple_choice")
        ),
    ],
)
def test_wrong_rows_are_named(kind, rows, error, message):
    with pytest.raises(error, match=message):
        read_task(rows, TaskConfig.create(name=kind))


COLUMNS = {
    "classification": {"text": "a b", "label": "x"},
    "multiple_choice": {"text": "a b", "choices": ["c", "d"], "label": 1},
    "token_classification": {"words": ["a", "b"], "tags": ["O", "X"]},
    "ranking": {"query": "a", "document": "b", "relevance": 2},
    "question_answering": {
        **{"question": "a", "context": "b c"},
        "answers": {"text": ["c"], "answer_start": [2]},
    },
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_columns_that_settings_name_are_read_and_none_else(kind):
    """Beside columns with the usual names; a name that no row has is an error."""
    row = COLUMNS[kind]
    label = list(row)[-1]
    texts = [name for name in row if name not in (label, "choices")]
    others = {name: ["-"] * len(x) if isinstance(x, list) else 0 for name, x in row.items()}
    others |= {name: "-" for name in texts if isinstance(row[name], str)}
    renamed = {f"own_{name}" if name in (*texts, label) else name: x for name, x in row.items()}
    settings = {
        "text_columns": tuple(f"own_{name}" for name in texts),
        "label_column": f"own_{label}",
    }
    rows = [{**others, **renamed}]
    expected = read_task([row], TaskConfig.create(name=kind))[0]
    assert read_task(rows, TaskConfig.create(name=kind, **settings))[0] == expected
    for wrong in ({"text_columns": ("typo",)}, {"label_column": "typo"}):
        with pytest.raises(DataError, match="expected a column 'typo', got"):
            read_task(rows, TaskConfig.create(name=kind, **settings | wrong))


def test_texts_of_a_choice():
    """By the names of the inputs of its exported model, too; others are not left out unsaid."""
    choices = {"choices": ["c", "d"], "label": 1}
    for texts in ({"texts": ["a", "b"]}, {"passage": "a", "question": "b"}):
        ((example,), _) = read_task(
            [{**texts, **choices}], TaskConfig.create(name="multiple_choice")
        )
        assert example.texts == ("a", "b")
        assert example.inputs(()) == {"passage": "a", "question": "b", "choices": ["c", "d"]}
    assert read_task([choices], TaskConfig.create(name="multiple_choice"))[0][0].texts == ("",)
    with pytest.raises(DataError, match="a column texts, or text, passage, question, got"):
        read_task([{"prompt": "a", **choices}], TaskConfig.create(name="multiple_choice"))
    with pytest.raises(DataError, match="expected a passage and a question"):
        ChoiceExample("1", ("a", "b", "c"), ("d", "e")).inputs(())


def test_flags_of_two_classes_are_no_names():
    task = TaskConfig.create(name="multi_label")
    for rows in ([("a", [1, 0]), ("b", [0, 1])], [("a", [True, False])] * 2):
        with pytest.raises(DataError, match=r"expected .*names of classes.*got 0 or 1 for each"):
            read_task(rows, task)
    assert read_task([("a", [1, 0]), ("b", [0])], task)[0][1].label == ("0",)


def test_a_tenth_is_held_out():
    labels = [*random.Random(0).choices("xyz", k=97), "rare"]
    rows = [TextExample(str(n), (f"{n}",), label) for n, label in enumerate(labels)]
    train, dev = held_out(rows, seed=3)
    assert len(dev) == 10 and sorted(train + dev, key=rows.index) == rows
    assert {row.label for row in train} == {"x", "y", "z", "rare"}
    assert held_out(rows, seed=3) == (train, dev) != held_out(rows, seed=4)
    numbers = [TextExample(str(n), (f"{n}",), n / 7) for n in range(23)]
    assert [len(part) for part in held_out(numbers, 0)] == [21, 2]


@pytest.mark.parametrize(
    ("texts", "labels", "why"),
    [
        ("aaaa", "xxyy", "all are copies or of one group"),
        ("ab", "xy", "each is the last of its class"),
    ],
)
def test_why_none_can_be_held_out(texts, labels, why):
    rows = [
        TextExample(str(n), (x,), y) for n, (x, y) in enumerate(zip(texts, labels, strict=True))
    ]
    with pytest.raises(DataError, match=f"none of the {len(rows)} .* can be held out, as {why}"):
        held_out(rows, seed=0)


def test_what_belongs_together_is_held_out_together():
    ranking = [RankingExample(f"d{n}", f"q{n % 11}", "q", "d", 1.0) for n in range(53)]
    questions = [QuestionExample(str(n), "q", f"paragraph {n % 11}") for n in range(53)]
    choices = [ChoiceExample(str(n), (f"p {n % 11}", f"q {n}"), ("a",), 0, "m") for n in range(53)]
    for rows, key in ((ranking, "query_id"), (questions, "context"), (choices, "texts")):
        train, dev = held_out(rows, seed=1)
        values = [[getattr(row, key) for row in part] for part in (train, dev)]
        groups = [{x[0] if key == "texts" else x for x in part} for part in values]
        assert len(groups[1]) == 1 and not groups[0] & groups[1]


@pytest.mark.parametrize("kind", ["texts", "words", "group", "group of words"])
def test_copies_or_groups_are_on_one_side(kind):
    """So the held-out part does not tell what the model has seen; a common text joins no groups."""
    rng = random.Random(7)
    rows: list = []
    for n in range(131):
        text, group = f"text {rng.randrange(31)}", ""
        if kind.endswith("words"):
            group = f"patient {rng.randrange(17)}" if kind != "words" else ""
            rows.append(TaggedExample(str(n), (text, "b"), ("O", rng.choice("XY")), group))
            continue
        if kind == "group":
            text, group = rng.choice(["normal", text]), f"patient {rng.randrange(17)}"
        rows.append(TextExample(str(n), (text,), rng.choice("ab"), group=group))
    train, dev = held_out(rows, seed=2, share=0.2)
    assert len(dev) > 5 and len(train) + len(dev) == len(rows)
    sides = [{getattr(row, kind.split()[0]) for row in part} for part in (train, dev)]
    assert not sides[0] & sides[1]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("rare", "number"), [(8, 120), (5, 50), (30, 61)])
def test_each_class_has_its_share(rare, number, seed):
    rows = [TextExample(str(n), (f"{n}",), "ab"[n < rare]) for n in range(number)]
    train, dev = held_out(rows, seed)
    expected = max(1, rare / 10)
    assert abs(sum(row.label == "b" for row in dev) - expected) < 1
    assert abs(len(dev) - number / 10) <= 1.5
    assert {row.label for row in train} == {"a", "b"}
