"""The same rows from every kind of source are the same examples of every task."""

import json

import datasets
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest

from data_prep.tasks.task_data import read_task, stream_task
from official.xlnet.configs.task import TaskConfig
from official.xlnet.data.examples import TextExample
from official.xlnet.errors import DataError
from official.xlnet.tasks.multiple_choice import ChoiceExample
from official.xlnet.tasks.question_answering import QuestionExample
from official.xlnet.tasks.ranking import RankingExample
from official.xlnet.tasks.token_classification import TaggedExample

TEXTS = ['a "fine" film', "naïve\nlines", "标题 \u00a0", "a\ttab", "dull,", "6", "'"]
CONTEXT = "He sat by the water."


def rows_of(columns):
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


# {task: (columns, the examples that they are)}
TABLES = {
    "classification": (
        {"pair_ID": [9] * 7, "sentence": TEXTS, "label": [*"abcab", "b ", "a"]},
        [
            TextExample(str(n), (t,), y)
            for n, t, y in zip(range(1, 8), TEXTS, [*"abcab", "b ", "a"], strict=True)
        ],
    ),
    "regression": (
        {
            "id": range(7),
            "premise": TEXTS,
            "hypothesis": TEXTS[::-1],
            "label": [0.5, 2.0] * 3 + [-1e9],
        },
        [
            TextExample(str(n), (TEXTS[n], TEXTS[6 - n]), (0.5, 2.0, 0.5, 2.0, 0.5, 2.0, -1e9)[n])
            for n in range(7)
        ],
    ),
    "multi_label": (
        {"text": TEXTS, "Label": [["x", "y"], [], ["x, z"], ["1"], [], ["y"], ["x"]]},
        [
            TextExample(
                str(n + 1), (TEXTS[n],), (("x", "y"), (), ("x, z",), ("1",), (), ("y",), ("x",))[n]
            )
            for n in range(7)
        ],
    ),
    "token_classification": (
        {"tokens": [[t, "b"] for t in TEXTS], "ner_tags": [["O", "B-X"]] * 7},
        [TaggedExample(str(n + 1), (TEXTS[n], "b"), ("O", "B-X")) for n in range(7)],
    ),
    "multiple_choice": (
        {"text": TEXTS, "choices": [[t, "b"] for t in TEXTS], "label": [0, 1] * 3 + [0]},
        [ChoiceExample(str(n + 1), (TEXTS[n],), (TEXTS[n], "b"), n % 2) for n in range(7)],
    ),
    "ranking": (
        {"query": ["q", "r"] * 3 + ["q"], "document": TEXTS, "relevance": [0, 1.0, 2, 0, 0, 1, 0]},
        [
            RankingExample(
                str(n + 1), "qr"[n % 2], "qr"[n % 2], TEXTS[n], (0, 1.0, 2, 0, 0, 1, 0)[n]
            )
            for n in range(7)
        ],
    ),
    "question_answering": (
        {
            "id": [f"x{n}" for n in range(7)],
            "question": TEXTS,
            "context": [CONTEXT] * 7,
            "answers": [{"text": ["water"], "answer_start": [14]}, {"text": [], "answer_start": []}]
            * 3
            + [{"text": ["He", "sat"], "answer_start": [0, 3]}],
        },
        [
            QuestionExample(
                f"x{n}",
                TEXTS[n],
                CONTEXT,
                (("He", 0), ("sat", 3)) if n == 6 else () if n % 2 else (("water", 14),),
            )
            for n in range(7)
        ],
    ),
}
FLAT = ("classification", "regression", "ranking")
FILES = {
    "a.jsonl": lambda frame, path: frame.to_json(path, orient="records", lines=True),
    "a.jsonl.gz": lambda frame, path: frame.to_json(path, orient="records", lines=True),
    "a.parquet": lambda frame, path: frame.to_parquet(path),
}
FLAT_FILES = {
    "a.csv": lambda frame, path: frame.to_csv(path, index=False),
    "a.json": lambda frame, path: frame.to_json(path, orient="records"),
}
OBJECTS = {
    "columns": lambda columns: columns,
    "arrays": lambda columns: {
        name: pd.Series(values).to_numpy() for name, values in columns.items()
    },
    "rows": rows_of,
    "generator": lambda columns: iter(rows_of(columns)),
    "frame": pd.DataFrame,
    "frame with an index": lambda columns: pd.DataFrame(columns, index=[7] * 7),
    "other order": lambda columns: pd.DataFrame(columns)[list(columns)[::-1]],
    "pandas with Arrow": lambda columns: pd.DataFrame(columns).convert_dtypes(
        dtype_backend="pyarrow"
    ),
    "Arrow": lambda columns: pa.table({name: list(values) for name, values in columns.items()}),
    "objects": lambda columns: pd.DataFrame(columns).astype(object),
    "Arrow data set": lambda columns: pyarrow.dataset.dataset(OBJECTS["Arrow"](columns)),
    "HF": lambda columns: datasets.Dataset.from_dict(
        {name: list(values) for name, values in columns.items()}
    ),
    "examples": None,
}


@pytest.mark.parametrize("source", [*OBJECTS, *FILES, *FLAT_FILES])
@pytest.mark.parametrize("name", TABLES)
def test_every_source_of_every_task(name, source, tmp_path):
    columns, expected = TABLES[name]
    if source in FLAT_FILES and name not in FLAT:
        return
    if source in OBJECTS:
        make = OBJECTS[source] or (lambda columns: expected)
    else:
        path = str(tmp_path / source)
        ({**FILES, **FLAT_FILES})[source](pd.DataFrame(columns), path)
        make = lambda columns: path  # noqa: E731
    task = TaskConfig.create(name=name)
    if source == "other order" and name == "regression":
        task.text_columns = ("premise", "hypothesis")
    assert read_task(make(columns), task) == (expected, {})
    # What is read to predict has no labels, and one example for each row.
    unlabelled = list(stream_task(make(columns), task))
    assert [e.id for e in unlabelled] == [e.id for e in expected]
    if source != "examples":
        assert not any(e.is_labelled for e in unlabelled)


def sources(frame, tmp_path):
    """A frame as the forms that its faults can be in."""
    frame.to_json(tmp_path / "a.jsonl", orient="records", lines=True)
    return [frame, frame.to_dict("list"), frame.to_dict("records"), str(tmp_path / "a.jsonl")]


NAMES = [
    (["text", "labels", "source"], ("text",), "labels"),
    (["Label", "text"], ("text",), "Label"),
    (["review", "url", "Target"], ("review",), "Target"),
    (["date", "label"], ("date",), "label"),
    (["source", "target"], ("source",), "target"),
]


@pytest.mark.parametrize(("names", "texts", "label"), NAMES, ids=str)
def test_names_decide_and_places_never_do(names, texts, label, tmp_path):
    frame = pd.DataFrame([[f"{name} {n}" for name in names] for n in range(5)], columns=names)
    for source in sources(frame, tmp_path):
        task = TaskConfig.create(name="classification")
        found, _ = read_task(source, task)
        assert (task.text_columns, task.label_column) == (texts, label)
        assert found[1] == TextExample("2", (f"{texts[0]} 1",), f"{label} 1")


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["text", "stars"], r"expected a column 'label', got text \('a'\), stars \('b'\)"),
        (
            ["text", "labels", "class"],
            r"task.label_column, got labels \('b'\), class \('c'\); set task.label_column",
        ),
    ],
)
def test_names_that_do_not_decide_are_refused(names, message, tmp_path):
    frame = pd.DataFrame([["a", "b", "c"][: len(names)]] * 3, columns=names)
    for source in sources(frame, tmp_path):
        with pytest.raises(DataError, match=message):
            read_task(source, TaskConfig.create(name="classification"))


@pytest.mark.parametrize("names", [["text", "label", "label"], ["text", 0, "0"]])
def test_a_column_twice_is_refused(names):
    frame = pd.DataFrame([["a", "b", "c"]] * 3, columns=names)
    task = TaskConfig.create(name="classification", label_column="label")
    forms = [frame]
    if all(isinstance(name, str) for name in names):
        forms.append(pa.Table.from_arrays([pa.array(["a"])] * 3, names=names))
    for form in forms:
        with pytest.raises(DataError, match=r"expected each column once, got '(label|0)' again"):
            read_task(form, task)


def test_a_field_that_the_first_row_lacks_is_read(tmp_path):
    rows = [{"title": f"t{n}", "label": "x", **({"body": "b"} if n else {})} for n in range(40)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for source in (rows, iter(rows), str(tmp_path / "a.jsonl"), pd.DataFrame(rows)):
        task = TaskConfig.create(name="classification")
        found, counts = read_task(source, task)
        assert task.text_columns == ("title", "body")
        assert len(found) == 39 and counts == {"malformed_rows": 1}


def test_examples_and_rows_in_one_list():
    task = TaskConfig.create(name="classification", text_columns=("text",))
    rows = [TextExample("1", ("a",), "x"), ("b", "y"), {"text": "c", "label": "x"}]
    expected = [
        TextExample(str(n), (text,), y) for n, text, y in zip("123", "abc", "xyx", strict=True)
    ]
    assert read_task(rows, task) == (expected, {})


@pytest.mark.parametrize(
    "row",
    [
        {"question": "q", "context": 3},
        {"context": CONTEXT},
        {"question": "q", "context": CONTEXT, "answers": {"text": ["He"], "answer_start": []}},
        {"question": "q", "context": CONTEXT, "answers": {"text": ["He"]}},
        {"question": "q", "context": CONTEXT, "answers": 7},
    ],
)
def test_questions_of_a_table_that_cannot_be_used_are_counted(row):
    rows = [{"id": str(n), "question": "q", "context": CONTEXT, "answers": []} for n in range(3)]
    found, counts = read_task(
        [*rows, row], TaskConfig.create(name="question_answering"), max_lost=0.25
    )
    reason = "malformed_rows" if "answers" in row else "missing_labels"
    assert len(found) == 3 and counts == {reason: 1}
    with pytest.raises(DataError, match="row 1: question None: context: expected a string, got 3"):
        list(
            stream_task(
                [{"question": "q", "context": 3}], TaskConfig.create(name="question_answering")
            )
        )


def test_the_source_says_what_its_numbers_are(tmp_path):
    """Names of classes are in the metadata; without them, somebody has to name them."""
    names = datasets.ClassLabel(names=["O", "B-PER"])
    features = {"tokens": datasets.List(datasets.Value("string")), "ner_tags": datasets.List(names)}
    rows = {"tokens": [["He", "Ann"], ["Bob"]], "ner_tags": [[0, 1], [1]]}
    source = datasets.Dataset.from_dict(rows, datasets.Features(features))
    source.to_parquet(path := str(tmp_path / "a.parquet"))
    expected = [
        TaggedExample("1", ("He", "Ann"), ("O", "B-PER")),
        TaggedExample("2", ("Bob",), ("B-PER",)),
    ]
    for form in (source, path, pyarrow.parquet.read_table(path)):
        assert read_task(form, TaskConfig.create(name="token_classification")) == (expected, {})
    source.to_json(json_lines := str(tmp_path / "a.jsonl"))
    for form in (source.to_pandas(), json_lines, rows):
        named = TaskConfig.create(
            name="token_classification", labels=("O", "B-PER"), label_type="int"
        )
        assert read_task(form, named) == (expected, {})
        named.label_type = "str"
        with pytest.raises(DataError, match="expected tags among O, B-PER, got the numbers 0, 1"):
            read_task(form, named)


def test_numbers_of_classes_are_numbers_where_the_task_needs_them(tmp_path):
    names = ["no", "maybe", "yes"]
    features = {"text": datasets.Value("string"), "label": datasets.ClassLabel(names=names)}
    rows = {"text": ["a", "b", "c"], "label": [2, 0, 1]}
    source = datasets.Dataset.from_dict(rows, datasets.Features(features))
    source.to_parquet(path := str(tmp_path / "a.parquet"))
    for form in (source, path):
        for settings, expected in (
            ({"name": "classification"}, ["yes", "no", "maybe"]),
            ({"name": "regression"}, [2.0, 0.0, 1.0]),
            ({"name": "classification", "labels": ("0", "1", "2")}, ["2", "0", "1"]),
        ):
            assert [e.label for e in read_task(form, TaskConfig.create(**settings))[0]] == expected


def test_a_transform_is_applied():
    whole = datasets.Dataset.from_dict({"text": ["A", "B"], "label": ["x", "y"], "more": ["", ""]})
    lower = lambda rows: {"text": [*map(str.lower, rows["text"])], "label": rows["label"]}  # noqa: E731
    few = whole.with_format("numpy", columns=["text", "label"])
    for form, texts in ((whole.with_transform(lower), "ab"), (few, "AB")):
        task = TaskConfig.create(name="classification")
        found, _ = read_task(form, task)
        assert [e.texts for e in found] == [(each,) for each in texts]
        assert [(row["text"],) for row in form] == [e.texts for e in found]


@pytest.mark.parametrize(
    ("columns", "setting", "name"),
    [
        ({"words": [["a"]], "tags": [["DET"]], "ner_tags": [["O"]]}, "label_column", "ner_tags"),
        ({"words": [["a"]], "tokens": [["b"]], "tags": [["O"]]}, "text_columns", "tokens"),
    ],
)
def test_two_usual_names_are_a_choice(columns, setting, name):
    with pytest.raises(
        DataError, match=rf"one column for task\.{setting}, got .*set task\.{setting}"
    ):
        read_task(columns, TaskConfig.create(name="token_classification"))
    value = (name,) if setting == "text_columns" else name
    (found,), _ = read_task(
        columns, TaskConfig.create(name="token_classification", **{setting: value})
    )
    assert (found.words, found.tags)[setting == "label_column"] == (*columns[name][0],)


@pytest.mark.parametrize("row", [{"tags": ["O"]}, {"words": ["a"]}, {"text": "a"}])
def test_a_row_without_words_or_tags_is_counted(row):
    rows = [{"words": ["a"], "tags": ["O"]}, row]
    found, counts = read_task(rows, TaskConfig.create(name="token_classification"), max_lost=0.5)
    assert (len(found), counts) == (1, {"malformed_rows": 1})
    with pytest.raises(DataError, match="row 1: expected a list"):
        read_task([row], TaskConfig.create(name="token_classification"))


def test_the_report_says_why_a_column_is_not_read(tmp_path, capfd):
    frame = pd.DataFrame(
        {"text": [*"abcd"], "label": [*"xyxy"], "n": range(4), "when": pd.Timestamp("2020-01-02")}
    ).assign(url="u", pair_id=7)
    frame[frame.n != 1].to_parquet(path := str(tmp_path / "a.parquet"))
    assert read_task(path, TaskConfig.create(name="classification"))[0][1].texts == ("c",)
    why = "n (numbers), when (dates), url (by name), pair_id (id), __index_level_0__ (pandas index)"
    said = f"texts are read from text, labels from label (by name); not read as text: {why}"
    assert said in capfd.readouterr().err
    read_task(
        path, TaskConfig.create(name="classification", text_columns=("n",), label_column="text")
    )
    said = "texts are read from n (task.text_columns), labels from text (task.label_column)"
    assert said in capfd.readouterr().err


def test_the_first_row_to_predict_does_not_say_that_a_text_is_a_number(tmp_path):
    frame = pd.DataFrame({"title": ["1984", "Emma"], "body": ["a", "b"], "year": [1949, 1815]})
    frame.to_csv(path := str(tmp_path / "a.csv"), index=False)
    for form, texts in ((frame, ("1984", "a")), (path, ("1984", "a", "1949"))):
        assert next(stream_task(form, TaskConfig.create(name="classification"))).texts == texts


@pytest.mark.parametrize(
    ("column", "expected"),
    [([7.0, None, 9.0], ["7", "row 2", "9"]), ([2.0, None, 3.5], ["2", "row 2", "3.5"])],
)
def test_ids_that_are_missing_are_not_those_of_others(column, expected):
    columns = {"text": [*"abc"], "label": [*"xyx"], "id": column}
    for form in (columns, pd.DataFrame(columns), pa.table(columns)):
        found, counts = read_task(form, TaskConfig.create(name="classification"))
        assert ([e.id for e in found], counts) == (expected, {})


@pytest.mark.parametrize(
    ("name", "column", "values", "labels"),
    [
        ("multiple_choice", "label", [1.0, 0.0, None], [1, 0]),
        ("ranking", "relevance", [True, False, None], [1.0, 0.0]),
        ("multi_label", "label", ["x,y", "x", None], [("x", "y"), ("x",), ()]),
        ("classification", "label", [b"x", b"y", None], ["x", "y"]),
    ],
)
def test_a_label_is_read_alike_from_every_source(name, column, values, labels, tmp_path):
    columns = {key: TABLES[name][0][key][:3] for key in TABLES[name][0] if key.lower() != column}
    frame = pd.DataFrame({**columns, column: values})
    frame.to_parquet(parquet := str(tmp_path / "a.parquet"))
    forms = [frame, parquet, pa.table(frame), frame.to_dict("records")]
    if name in ("ranking", "multi_label"):
        frame.to_csv(path := str(tmp_path / "a.csv"), index=False)
        forms.append(path)
    for form in forms:
        found, _ = read_task(form, TaskConfig.create(name=name), max_lost=0.5)
        assert [e.expected if name != "ranking" else e.relevance for e in found] == labels
