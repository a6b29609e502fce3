"""Tables that pandas, pyarrow and the csv module write, as their users do."""

import csv
import random

import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pytest

from data_prep.tasks.task_data import read_task, stream_task
from official.xlnet.configs.task import TaskConfig
from official.xlnet.data.examples import TextExample
from official.xlnet.errors import DataError

# What texts are made of; the second line is not in formats that have no quotes, or in a workbook.
PARTS = ["the water", "naïve", "标题", "a, b", "a; b", "'", "\\", "|", "\u00a0", "{", "[1]", "#"]
ANY_PART = [
    *PARTS,
    'said "no"',
    '"',
    "line\nend",
    "line\r\nend",
    "a\tb",
    "\u2028",
    "=1+1",
    "\ufeff",
]
TEXTS = ("Überschrift", "text b")


def frame_of(parts, seed=1):
    """A table of two texts, one of which is sometimes empty, and a label."""
    rng = random.Random(seed)
    rows = [
        [" ".join(rng.choices(parts, k=rng.randint(1, 4))) for _ in TEXTS] + [rng.choice(LABELS)]
        for _ in range(23)
    ]
    frame = pd.DataFrame(rows, columns=[*TEXTS, "label"])
    frame.loc[::5, TEXTS[0]] = ""
    return frame


LABELS = ["good", "bad", "né"]


def examples_of(frame, first=1):
    texts = zip(frame[TEXTS[0]], frame[TEXTS[1]], strict=True)
    rows = enumerate(zip(texts, frame.label, strict=True), first)
    return [TextExample(str(number), each, label) for number, (each, label) in rows]


def task_of(name="classification", **settings):
    return TaskConfig.create(name=name, **settings)


def write_excel(frame, path):
    """A workbook, which is saved as CSV by way of pandas."""
    frame.to_excel(f"{path}.xlsx", index=False)
    pd.read_excel(f"{path}.xlsx", keep_default_na=False).to_csv(path, index=False)


def write_rows(dialect):
    def write(frame, path):
        with open(path, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, frame.columns, dialect=dialect)
            writer.writeheader()
            writer.writerows(frame.to_dict("records"))

    return write


def write_arrow(**options):
    options = pyarrow.csv.WriteOptions(**options)
    return lambda frame, path: pyarrow.csv.write_csv(
        pa.Table.from_pandas(frame, preserve_index=False), path, options
    )


def to_csv(**options):
    return lambda frame, path: frame.to_csv(path, **{"index": False, **options})


def to_json(**options):
    return lambda frame, path: frame.to_json(path, orient="records", **options)


PLAIN = {
    "tabs.tsv": to_csv(sep="\t"),
    "tabs.TXT": to_csv(sep="\t", lineterminator="\r\n"),
    "index and tabs.tsv": to_csv(sep="\t", index=True),
    "workbook.csv": write_excel,
}
WRITERS = {
    "a.csv": to_csv(),
    "index.csv": to_csv(index=True),
    "index of an index.csv": lambda frame, path: frame.reset_index(names="Unnamed: 0").to_csv(path),
    "named index.csv": lambda frame, path: frame.rename_axis("idx").rename(str).to_csv(path),
    "mark.CSV": to_csv(encoding="utf-8-sig", lineterminator="\r\n"),
    "semicolons.csv": to_csv(sep=";"),
    "bars.csv": to_csv(sep="|"),
    "tabs.csv": to_csv(sep="\t", quoting=csv.QUOTE_ALL),
    "commas.tsv": to_csv(),
    "semicolons.txt": to_csv(sep=";"),
    "all quoted.csv": to_csv(quoting=csv.QUOTE_NONNUMERIC),
    **{f"a.csv.{ending}": to_csv() for ending in ("gz", "bz2", "xz", "zst")},
    "a.jsonl": to_json(lines=True, force_ascii=False),
    "a.NDJSON": to_json(lines=True),
    "a.jsonl.gz": to_json(lines=True),
    "array.json": to_json(),
    "indented.json": to_json(indent=2),
    "arrow.csv": write_arrow(),
    "arrow with bars.csv": write_arrow(delimiter="|", quoting_style="all_valid"),
    "excel.csv": write_rows("excel"),
    "excel with tabs.csv": write_rows("excel-tab"),
    "unix.csv": write_rows("unix"),
}


@pytest.mark.parametrize("name", [*PLAIN, *WRITERS])
def test_the_same_rows_in_every_format_are_the_same_examples(name, tmp_path, capfd):
    frame, path, task = (
        frame_of(PARTS if name in PLAIN else ANY_PART),
        str(tmp_path / name),
        task_of(),
    )
    (PLAIN | WRITERS)[name](frame, path)
    expected = examples_of(frame, first=0 if name.startswith("named") else 1)
    assert read_task(path, task) == (expected, {})
    said = capfd.readouterr().err
    assert "texts are read from Überschrift, text b, labels from label" in said
    other = any(word in name for word in ("semicolons", "bars", "tabs.csv", "commas"))
    assert ("separated by" in said) == other, said
    # Every row has its prediction, with the columns that the model was trained on.
    predicted = list(stream_task(path, task))
    assert [(e.id, e.texts) for e in predicted] == [(e.id, e.texts) for e in expected]


@pytest.mark.parametrize("ending, said", [("tsv", True), ("csv", False)])
def test_quotes_that_pandas_writes_into_tsv_are_mentioned(ending, said, tmp_path, capfd):
    texts = ['he said "no" twice', 'and "yes" once', "plain words"]
    frame = pd.DataFrame({"text": texts, "label": ["a", "b", "a"]})
    frame.to_csv(path := str(tmp_path / f"a.{ending}"), sep="\t", index=False)
    examples, _ = read_task(path, TaskConfig.create(name="classification"))
    assert ("2 lines have fields in quotes, which TSV reads" in capfd.readouterr().err) == said
    assert ([example.texts[0] for example in examples] == texts) != said


COLUMNS = {
    "Int64": [1, 2, None],
    "Float64": [1.5, 2.25, None],
    "boolean": [True, False, None],
    "string": ["x", "y", None],
    "category": ["x", "y", None],
}


@pytest.mark.parametrize("dtype", COLUMNS)
@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_a_null_is_a_missing_label_and_no_class(dtype, name, tmp_path):
    values = COLUMNS[dtype]
    frame = pd.DataFrame({"text": ["a", "b", "c"], "label": pd.array(values, dtype=dtype)})
    (to_csv() if name == "a.csv" else to_json(lines=True))(frame, tmp_path / name)
    found, counts = read_task(str(tmp_path / name), task_of(), max_lost=0.5)
    assert [example.label for example in found] == [str(value) for value in values[:2]]
    assert counts == {"missing_labels": 1}
    assert read_task(frame, task_of(), max_lost=0.5) == (found, counts)


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda frame, path: frame.to_parquet(path), "expected text in UTF-8, got a Parquet file"),
        (lambda frame, path: frame.to_excel(f"{path}.xlsx"), "no data at"),
        (to_csv(encoding="utf-16"), "expected UTF-8, got UTF-16; convert it with"),
        (to_csv(encoding="cp1252"), "UTF-8"),
        (to_csv(header=False), "expected a column 'label'"),
        (lambda frame, path: frame.to_json(path), "expected a table.* got JSON"),
        (to_csv(columns=["text"]), "expected a column 'label', got text"),
    ],
)
def test_what_is_not_read_is_one_sentence(write, message, tmp_path):
    frame = pd.DataFrame({"text": ["naïve", "b"], "label": ["x", "y"]})
    write(frame, str(tmp_path / "a.csv"))
    with pytest.raises(DataError, match=message):
        read_task(str(tmp_path / "a.csv"), task_of())
