"""Tables of tasks that are broken or unclear, and what of a table is read: one sentence for each.

Tables as programs write them are in `tests/real/test_tables.py`.
"""

import bz2
import gzip
import lzma

import pytest
import zstandard

from data_prep.tasks.task_data import read_task, stream_task
from official.xlnet.configs.task import TaskConfig
from tests.helpers.compare import assert_refused

MULTI = {"name": "multi_label"}
JSON_LINES = '{"text": "a", "label": "b"}\n' * 2


def task_of(name="classification", **settings):
    return TaskConfig.create(name=name, **settings)


def texts_and_labels(examples):
    return [(example.texts, example.label) for example in examples]


def write(path, text):
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize("number", [2, 11, 23])
def test_a_quote_that_is_never_closed_is_an_error_with_its_line(number, tmp_path):
    lines = ["first,text b,label", *(f'"the ""water"", {n}",naïve,good' for n in range(22))]
    lines[number - 1] = lines[number - 1].replace('"",', '"', 1)
    path = write(tmp_path / "a.csv", "\n".join(lines) + "\n")
    for read in (read_task, lambda *arguments: list(stream_task(*arguments))):
        assert_refused(
            rf"a\.csv, line {number}: expected .*quote",
            read,
            path,
            task_of(text_columns=("first",)),
        )


@pytest.mark.parametrize(
    ("name", "text", "settings", "message"),
    [
        ("a.json", '{"data": [\n{"paragraphs": []}]}', {}, "expected JSON lines, .* or an array"),
        ("a.jsonl", '{\n "text": "a"\n}\n', {}, "expected JSON lines, .* one object over several"),
        ("a.jsonl", "[1, 2]", {}, "2 of 2 rows cannot be used .* expected an object, got 1"),
        ("a.jsonl", "text\tlabel\na\tb\n", {}, "line 1 is not valid JSON"),
        ("a.csv", '{"text": "a"}\n{"text": "b"}\n', {}, "expected a table, as .csv says, got JSON"),
        ("a.csv", "text;score\na;b\n", {}, "expected a column 'label', got text;score"),
        ("a.tsv", "text, label\na, b\n", {}, "expected a column 'label', got text, label"),
        ("a.csv", "text, label\na, b\n", {}, r"column 'label', got text \('a'\), ' label'"),
        (
            "a.csv",
            "id,label\n1,b\n",
            {},
            r"expected a column of text, got id \('1'\), label \('b'\)",
        ),
        ("a.csv", "text,label\na,\nb,x\n", {}, "1 of 2 rows .*missing_labels 1.* row 1: expected"),
        ("a.jsonl", '{"text": "a", "label": null}\n', {}, "missing_labels 1"),
        ("a.csv", "id,text,label\n7,a,x\n7,b,y\n", {}, "ids of their own .* got '7' 2 times"),
        ("a.csv", "text,label\na,nan\nb,3\n", {"name": "regression"}, "malformed_rows 1"),
        ("a.csv", "text,label\na,\nb,3\n", {"name": "regression"}, "missing_labels 1"),
        ("a.csv", """text,label\na,"['x', 'y']"\n""", MULTI, "the list as a text: "),
        ("a.tsv", 'text\tlabel\na\t["x"]\n', MULTI, "the list as a text: "),
        ("a.csv", "text,label\na,[]\n", MULTI, "the list as a text: '\\[\\]'"),
        ("a.csv", 'text,label\na,"[0, 1.0]"\n', MULTI, "the list as a text: "),
        ("a.csv", 'text,label\na,"0,1,0"\n', MULTI, "got 0 or 1 for each class: '0,1,0'"),
        ("a.json", '[{"text": "a", "label": [0.0, 1.0, 1.0]}]', MULTI, "got 0 or 1 for each class"),
        *(
            (name, text, {"columns": ("text", "label")}, r"got JSON; rename the file to \.jsonl")
            for name in ("a.txt", "a.csv", "a")
            for text in (JSON_LINES, '[{"text": "a"}]')
        ),
    ],
)
def test_other_files_are_one_sentence(name, text, settings, message, tmp_path):
    assert_refused(message, read_task, write(tmp_path / name, text), task_of(**settings))


@pytest.mark.parametrize("compress", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_lost_rows_are_an_error_above_a_limit(compress, tmp_path):
    path = tmp_path / "a.csv"
    text = "text,label\n" + "a,b\n" * 46 + "one,row,more\n" * 2
    path.write_bytes(compress(text.encode()))
    examples, counts = read_task(str(path), task_of())
    assert (len(examples), counts) == (46, {"malformed_rows": 2})
    path.write_bytes(zstandard.compress((text + "one,row,more\n").encode()))
    message = r"3 of 49 rows cannot be used \(malformed_rows 3\); expected at most 0.05 of them"
    assert_refused(
        f"{message}, see --max_lost; the first: .*, line 48: ", read_task, str(path), task_of()
    )
    assert len(read_task(str(path), task_of(), max_lost=3 / 49)[0]) == 46


@pytest.mark.parametrize(
    ("column", "is_text"),
    [
        *(("pair_ID", False), ("PassengerId", False), ("uuid", False), ("pairID", False)),
        *(("sentence index", False), ("", False), ("Unnamed: 3", False)),
        *(("idea", True), ("grid", True), ("Unnamed", True), ("标题", True), ("identity", True)),
    ],
)
def test_columns_of_ids_are_known_by_their_names(column, is_text, tmp_path):
    rows = "".join(f"{n} x\tt{n}\t{'ab'[n % 2]}\n" for n in range(3))
    path, task = write(tmp_path / "a.tsv", f"{column}\ttext\tlabel\n{rows}"), task_of()
    read_task(path, task)
    assert task.text_columns == ((column, "text") if is_text else ("text",))


COLA = {
    "columns": ("source", "label", "star", "sentence"),
    "text_columns": ("sentence",),
}
NEWS = {"columns": ("label", "title", "text"), "text_columns": ("title", "text")}


@pytest.mark.parametrize(
    ("name", "text", "settings", "texts"),
    [
        ("test.tsv", "index\tsentence\n0\tHe sat.\n1\tHe, sat.\n", COLA, ["He sat.", "He, sat."]),
        ("as trained.tsv", "x\t0\t*\tHe sat.\ny\t1\t\tHe ran.\n", COLA, ["He sat.", "He ran."]),
        ("new.tsv", "He sat.\nHe, sat.\n", COLA, ["He sat.", "He, sat."]),
        ("new.csv", "text,title\nb,a\nd,c\n", NEWS, ["a|b", "c|d"]),
        ("new.csv", '"a","b"\n"c",""\n', NEWS, ["a|b", "c|"]),
        ("as trained.csv", '"1","a","b"\n', NEWS, ["a|b"]),
        ("new.csv", "a;b\nc;d\n", {**NEWS, "columns": ("title", "text")}, ["a|b", "c|d"]),
        ("empty.csv", 'text\n""\na\n""\n', {"text_columns": ("text",)}, ["", "a", ""]),
    ],
)
def test_a_file_to_predict_needs_the_texts_alone(name, text, settings, texts, tmp_path):
    examples = stream_task(write(tmp_path / name, text), task_of(**settings))
    assert ["|".join(example.texts) for example in examples] == texts


@pytest.mark.parametrize("name", ["a.txt", "a.csv", "a.tsv"])
@pytest.mark.parametrize("header", ["Only one line.", "review,label", "texts", " text"])
def test_a_file_without_rows_needs_the_columns_too(name, header, tmp_path):
    """One line of text is no table without rows."""
    path, task = write(tmp_path / name, f"{header}\n"), task_of(text_columns=("text",))
    message = "expected a column 'text', got a header of .* without rows"
    assert_refused(message, lambda: [*stream_task(path, task)])
    assert [*stream_task(write(tmp_path / name, "text\n"), task)] == []


@pytest.mark.parametrize(
    ("text", "texts"),
    [
        ("text\tlabel\na\rb\tx\n\rc\ty\n", ["a\rb", "\rc"]),
        ("text\tlabel\r\na\rb\tx\r\nc\ty\r\n", ["a\rb", "c"]),
        ("text\tlabel\ra\tx\rb\ty\r", ["a", "b"]),  # Lines of old Macs.
    ],
)
def test_a_carriage_return_in_a_line_of_tsv_is_text(text, texts, tmp_path):
    (tmp_path / "a.tsv").write_bytes(text.encode())
    found, counts = read_task(str(tmp_path / "a.tsv"), task_of())
    assert texts_and_labels(found) == [((texts[0],), "x"), ((texts[1],), "y")] and not counts
