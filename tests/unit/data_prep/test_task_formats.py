"""Task files as people have them: the same rows in many formats give the same examples, or one
sentence; every row that comes in goes out, or is counted."""

import bz2
import csv
import gzip
import io
import json
import lzma
import random

import pytest
import zstandard

from data_prep.tasks.task_data import read_task, stream_task
from official.xlnet.configs.task import TaskConfig
from official.xlnet.errors import ConfigError, DataError

# What texts are made of; tabs and line ends are left out where a format cannot hold them.
PARTS = [
    *(
        "the water",
        "naïve",
        "标题",
        "Überschrift",
        'said "no"',
        '"',
        "a, b",
        "a; b",
        "'",
        "\\",
        "|",
    ),
    *("line\nend", "line\r\nend", "a\tb", "\u00a0", "\u2028", "\ufeff", "{", "[1]", "#", "=1+1"),
]
LABELS = ["good", "bad", "né"]


def random_rows(seed, parts, columns=("Überschrift", "text b", "label")):
    rng = random.Random(seed)
    rows = []
    for number in range(23):
        texts = [" ".join(rng.choices(parts, k=rng.randint(1, 4))) for _ in columns[:-1]]
        if number % 5 == 3:
            texts[0] = ""
        rows.append(dict(zip(columns, [*texts, rng.choice(LABELS)], strict=True)))
    return rows


def as_csv(rows, separator=",", quoting=csv.QUOTE_MINIMAL, line_end="\n", names=True):
    file = io.StringIO()
    writer = csv.writer(file, delimiter=separator, quoting=quoting, lineterminator=line_end)
    if names:
        writer.writerow(list(rows[0]))
    writer.writerows([list(row.values()) for row in rows])
    return file.getvalue()


def as_tsv(rows, line_end="\n"):
    lines = [list(rows[0]), *(list(row.values()) for row in rows)]
    return "".join("\t".join(fields) + line_end for fields in lines)


def with_pandas_index(rows, name=""):
    return [{name: str(number), **row} for number, row in enumerate(rows)]


def as_json_lines(rows, ascii_only=False):
    return "".join(json.dumps(row, ensure_ascii=ascii_only) + "\n" for row in rows)


NO_TABS = [part for part in PARTS if not set(part) & set("\t\r\n")]
FORMATS = {
    "a.csv": lambda rows: as_csv(rows),
    "a.CSV": lambda rows: as_csv(rows, line_end="\r\n"),
    "all quoted.csv": lambda rows: as_csv(rows, quoting=csv.QUOTE_ALL),
    "semicolons.csv": lambda rows: as_csv(rows, ";"),
    "bars.csv": lambda rows: as_csv(rows, "|"),
    "tabs.csv": lambda rows: as_csv(rows, "\t", csv.QUOTE_ALL),
    "commas.tsv": lambda rows: as_csv(rows),
    "semicolons.txt": lambda rows: as_csv(rows, ";"),
    "pandas.csv": lambda rows: as_csv(with_pandas_index(rows)),
    "pandas twice.csv": lambda rows: as_csv(with_pandas_index(rows, "Unnamed: 0")),
    "ids.csv": lambda rows: as_csv([{"pair_ID": f"x{n}", **row} for n, row in enumerate(rows)]),
    "a.jsonl": as_json_lines,
    "a.NDJSON": lambda rows: as_json_lines(rows, ascii_only=True),
    "array.json": lambda rows: json.dumps(rows),
    "indented array.jsonl": lambda rows: json.dumps(rows, indent=2, ensure_ascii=False),
    "other fields.jsonl": lambda rows: as_json_lines(
        [{**row, "entry_id": n, "n": float("nan")} for n, row in enumerate(rows)]
    ).replace("NaN", "NaN" + ', "m_idx": ' + "9" * 5000),
}
LINE_FORMATS = {
    "a.tsv": as_tsv,
    "a.TXT": lambda rows: as_tsv(rows, "\r\n"),
    "pandas.tsv": lambda rows: as_tsv(with_pandas_index(rows)),
}
COMPRESS = [
    *(bytes, gzip.compress, bz2.compress, lzma.compress, zstandard.compress),
]


def task_of(name="classification", **settings):
    return TaskConfig.of({"name": name, **settings})


def texts_and_labels(examples):
    return [(example.texts, example.label) for example in examples]


@pytest.mark.parametrize("name", [*FORMATS, *LINE_FORMATS])
@pytest.mark.parametrize("seed", [2, 3])
def test_the_same_rows_in_every_format_are_the_same_examples(name, seed, tmp_path, capfd):
    rng = random.Random(f"{name} {seed}")
    is_line_format = name in LINE_FORMATS
    parts = NO_TABS if is_line_format else PARTS
    if name.startswith("other"):
        parts = [part for part in parts if "NaN" not in part]
    rows = random_rows(seed, parts)
    text = (LINE_FORMATS | FORMATS)[name](rows)
    data = rng.choice([b"", b"\xef\xbb\xbf"]) + text.encode()
    (tmp_path / name).write_bytes(rng.choice(COMPRESS)(data))
    path = str(tmp_path / name)

    task = task_of(text_columns=() if "other" not in name else ("Überschrift", "text b"))
    examples, counts = read_task(path, task)
    expected = [((row["Überschrift"], row["text b"]), row["label"]) for row in rows]
    assert texts_and_labels(examples) == expected
    assert not +counts
    assert task.text_columns == ("Überschrift", "text b")
    said = capfd.readouterr().err
    assert ("texts are read from Überschrift, text b, labels from label" in said) == (
        "other" not in name
    )
    other = "separated by" in said
    assert other == any(word in name for word in ("semicolons", "bars", "tabs", "commas")), said
    # Every row has its prediction, with the columns that the model was trained on.
    predicted = list(stream_task(path, task))
    assert [example.texts for example in predicted] == [texts for texts, _ in expected]


@pytest.mark.parametrize("quote", ["first", "middle", "last"])
@pytest.mark.parametrize("seed", range(5))
def test_a_quote_that_is_never_closed_is_an_error_with_its_line(quote, seed, tmp_path):
    rows = random_rows(seed, ["the water", "naïve", "标题", "a, b", 'said "no"'])
    lines = as_csv(rows).splitlines()
    number = {"first": 1, "middle": len(lines) // 2, "last": len(lines) - 1}[quote]
    lines[number] = '"the ' + lines[number].replace('"', "")
    path = tmp_path / "a.csv"
    path.write_text("\n".join(lines) + "\n")
    message = rf"a\.csv, line {number + 1}: expected .*quote"
    with pytest.raises(DataError, match=message):
        read_task(str(path), task_of())
    with pytest.raises(DataError, match=message):
        list(stream_task(str(path), task_of(text_columns=("Überschrift",))))


MULTI = {"name": "multi_label"}


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
        ("a.csv", "text, label\na, b\n", {}, "column 'label', got text, ' label'"),
        ("a.csv", "id,label\n1,b\n", {}, "expected a column of text, got id, label"),
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
    ],
)
def test_other_files_are_one_sentence(name, text, settings, message, tmp_path):
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match=message):
        read_task(str(tmp_path / name), task_of(**settings))


def test_lost_rows_are_an_error_above_a_limit(tmp_path):
    rows = random_rows(0, ["a", "b"]) * 2
    path = tmp_path / "a.csv"
    text = as_csv(rows)
    path.write_text(text + "one,row\n" * 2)
    examples, counts = read_task(str(path), task_of())
    assert (len(examples), counts) == (46, {"malformed_rows": 2})
    path.write_text(text + "one,row\n" * 3)
    message = r"3 of 49 rows cannot be used \(malformed_rows 3\); expected at most 0.05 of them"
    with pytest.raises(DataError, match=f"{message}, see --max_lost; the first: .*, line 48: "):
        read_task(str(path), task_of())
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
    rows = [{column: f"{n} x", "text": f"t{n}", "label": "ab"[n % 2]} for n in range(3)]
    (tmp_path / "a.tsv").write_text(as_tsv(rows))
    task = task_of()
    read_task(str(tmp_path / "a.tsv"), task)
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
    (tmp_path / name).write_text(text)
    examples = list(stream_task(str(tmp_path / name), task_of(**settings)))
    assert ["|".join(example.texts) for example in examples] == texts


TREC = {"queries.tsv": "1\twho\n", "documents.tsv": "a\tA.\n", "qrels": "1 0 a 2\n"}


@pytest.mark.parametrize("name", ["queries.tsv", "documents.tsv", "qrels", "run"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_trec_files(name, mark, tmp_path):
    for other, text in (TREC | {"run": "1 Q0 a 1 2.5 x\n"}).items():
        (tmp_path / other).write_bytes(gzip.compress(mark + text.encode()))
    ((example,), counts) = read_task(str(tmp_path), task_of("ranking"))
    assert (example.query_id, example.query, example.relevance, counts) == ("1", "who", 2.0, {})
    again = {"queries.tsv": "1\twhy\n", "documents.tsv": "a\tB.\n", "qrels": "1 0 a 1\n"}
    with open(tmp_path / name, "ab") as file:
        file.write(gzip.compress(again.get(name, "1 Q0 a 2 1.5 x\n").encode()))
    with pytest.raises(DataError, match=rf"{name}, line 2: expected (one text|each document)"):
        read_task(str(tmp_path), task_of("ranking"))


def squad(context, *questions):
    qas = [{"id": str(n), "question": "What?", **question} for n, question in enumerate(questions)]
    return {"data": [{"paragraphs": [{"context": context, "qas": qas}]}]}


EDGES = ["", " ", "\n", "\u00a0", "\ufeff", "\u200b", " \u00a0\ufeff", "\u3000"]


@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
def test_answers_lose_what_is_invisible_at_their_ends(bom, tmp_path):
    rng = random.Random(7)
    edges = [(left, right) for left in EDGES for right in EDGES]
    rng.shuffle(edges)
    examples = []
    for number, (left, right) in enumerate(edges):
        context = f"The{left or ' '}river water{right or ' '}flows."
        text = f"{left}river water{right}"
        answer = {"text": text, "answer_start": context.index(text)}
        path = tmp_path / f"{number}.json"
        tree = squad(context, {"answers": [answer]}, {"answers": [], "is_impossible": True})
        path.write_bytes(bom + json.dumps(tree).encode())
        found, counts = read_task(str(path), task_of("question_answering"))
        assert counts == ({"answers_stripped": 1} if left or right else {})
        assert found[0].answers == (("river water", context.index("river")),)
        examples += found
    assert len(examples) == 2 * len(edges)


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ({"answers": [], "is_impossible": "false"}, "is_impossible: expected true or false"),
        ({"answers": [], "is_impossible": 0}, "is_impossible: expected true or false, got 0"),
        ({"answers": [], "is_impossible": False}, "contradictory_answers 1"),
        (
            {"answers": [{"text": "sat", "answer_start": 3}], "is_impossible": True},
            "contradictory_answers 1",
        ),
        ({"answers": [{"text": "sat", "answer_start": 4}]}, "answers_not_in_paragraph 1"),
        ({"answers": [{"text": "\u00a0", "answer_start": 2}]}, "answers_not_in_paragraph 1"),
        ({}, "missing_labels 1"),
        ({"id": "0", "answers": []}, "question 0: expected an id of its own"),
    ],
)
def test_questions_that_contradict_themselves(question, message, tmp_path):
    good = {"answers": [{"text": "sat", "answer_start": 3}], "is_impossible": False}
    (tmp_path / "a.json").write_text(json.dumps(squad("He sat.", good, question)))
    with pytest.raises(DataError, match=message):
        read_task(str(tmp_path / "a.json"), task_of("question_answering"))
    if "id" not in question and not isinstance(question.get("is_impossible"), str | int):
        assert len(list(stream_task(str(tmp_path / "a.json"), task_of("question_answering")))) == 2


@pytest.mark.parametrize("name", ["a.txt", "a.csv", "a.tsv", "a"])
@pytest.mark.parametrize("text", ['{"text": "a", "label": "b"}\n' * 2, '[{"text": "a"}]'])
def test_json_is_not_a_table(name, text, tmp_path):
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match=r"got JSON; rename the file to \.jsonl"):
        read_task(str(tmp_path / name), task_of(columns=("text", "label")))


CONLL = "-DOCSTART- -X- O\n\nEU NNP B-ORG\nsays VBZ O\n\nPeter NNP B-PER\n"


@pytest.mark.parametrize(
    ("text", "labels", "words"),
    [
        (CONLL, ("O", "B-ORG"), ["EU says", "Peter"]),
        ("\ufeff" + CONLL.replace("\n", "\r\n"), (), ["EU says", "Peter"]),
        (CONLL.replace(" ", "\t"), ("X",), ["EU says", "Peter"]),
        ("New York\tB-LOC\nhas\tO\n", (), ["New York|has"]),
        ("EU\nsays\n\nPeter\n", ("O",), ["EU says", "Peter"]),
        ("EU NOUN\nsays VERB\nno DET\n", ("NOUN", "VERB", "DET"), ["EU says no"]),
        (
            "EU says no.\nPeter  came\u00a0in .\n\nYes\n",
            ("O",),
            ["EU says no.", "Peter came in .", "Yes"],
        ),
        ("EU says no\n", ("O",), ["EU says no"]),
        ("EU\n\u3000\nsays\n\nPeter\n", ("O",), ["EU \u3000 says", "Peter"]),
        ("EU O\n\u3000\nPeter O\n\u00a0 O\n", ("O",), ["EU", "Peter \u00a0"]),
        ("EU says no\nPeter says no", ("O",), ["EU says no", "Peter says no"]),
    ],
)
def test_words_to_tag(text, labels, words, tmp_path):
    (tmp_path / "a.txt").write_text(text)
    examples = list(
        stream_task(str(tmp_path / "a.txt"), task_of("token_classification", labels=labels))
    )
    expected = [tuple(line.split("|" if "|" in line else " ")) for line in words]
    assert [example.words for example in examples] == expected
    assert [example.id for example in examples] == [str(n) for n in range(len(words))]


@pytest.mark.parametrize(
    ("text", "is_training", "message"),
    [
        ("EU says no\n" * 3, False, "3 lines of 3 columns without a tag; leave only the words"),
        ("EU\tO\nsays\n", False, r"line 2: expected 2 columns, as above, got 'says'"),
        ("EU NNP O\nsays O\n", True, r"line 2: expected 3 columns, as above, got 'says O'"),
        ("EU\nsays\n", True, "line 1: expected a word and its tag, got 'EU'"),
        ("EU\t\tO\n\tNNP\tO\n", True, "line 2: expected 3 columns"),
    ],
)
def test_columns_that_cannot_be_told(text, is_training, message, tmp_path):
    (tmp_path / "a.txt").write_text(text)
    task = task_of("token_classification", labels=("O",))
    with pytest.raises(DataError, match=message):
        read_task(str(tmp_path / "a.txt"), task) if is_training else list(
            stream_task(str(tmp_path / "a.txt"), task)
        )


def multitask_files(tmp_path):
    (tmp_path / "own.csv").write_text("stars,pair_ID,one,two,three\ngood,1,a,b,c\nbad,2,d,e,f\n")
    (tmp_path / "more.csv").write_text("stars,one\n3.5,a\n1.25,b\n")
    (tmp_path / "sst2.tsv").write_text("sentence\tlabel\nfine\t1\ndull\t0\n")
    names = ("own.csv", "more.csv", "sst2.tsv")
    return ",".join(f"{name.partition('.')[0]}={tmp_path / name}" for name in names)


def test_each_data_set_of_a_multi_task_has_its_columns(tmp_path):
    files = multitask_files(tmp_path)
    settings = {"label_column": "stars", "regressions": ("more",)}
    task = task_of("multitask", text_columns=("own/three", "own/one"), **settings)
    expected = [
        (("c", "a"), "good"),
        (("f", "d"), "bad"),
        *((("a",), 3.5), (("b",), 1.25), (("fine",), "1"), (("dull",), "0")),
    ]
    assert texts_and_labels(read_task(files, task)[0]) == expected
    assert task.subtasks == ("own", "more", "sst2")
    assert task.text_columns == ("own/three", "own/one", "more/one", "sst2/sentence")
    # What was found in training is what is read afterwards.
    assert texts_and_labels(read_task(files, task)[0]) == expected
    predicted = list(stream_task(f"own={tmp_path / 'own.csv'}", task))
    assert [(e.texts, e.subtask) for e in predicted] == [(("c", "a"), "own"), (("f", "d"), "own")]
    task = task_of("multitask", text_columns=("one",), **settings)
    assert read_task(files, task)[0][0].texts == ("a",)
    assert task.text_columns == ("own/one", "more/one", "sst2/sentence")


@pytest.mark.parametrize("settings", [{"label_column": "x"}, {"text_columns": ("sentence",)}])
def test_settings_that_no_data_set_uses_are_refused(settings, tmp_path):
    files = multitask_files(tmp_path).split(",")[2]
    (key,) = settings
    with pytest.raises(ConfigError, match=f"task.{key}: expected no setting, .* sst2 are known"):
        read_task(files, task_of("multitask", **settings))
    with pytest.raises(DataError, match="expected each NAME once, got 'sst2="):
        read_task(f"{files},{files}", task_of("multitask"))
