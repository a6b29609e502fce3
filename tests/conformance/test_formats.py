"""Every format of text and of tables, drawn from their tables: written, read, divided, damaged."""

import gzip
import re

import pandas as pd
import pyarrow as pa
import pytest

from data_prep.corpus import corpus, readers
from data_prep.settings import ReadOptions
from data_prep.tasks.task_data import read_task
from official.xlnet.configs.registry import ROW_FILES, TEXT_FORMATS
from official.xlnet.configs.task import TaskConfig
from official.xlnet.data.examples import TextExample
from official.xlnet.errors import ConfigError, DataError
from tests.conformance.text_formats import (
    BLOCK_SIZES,
    NOT_UTF8,
    TextExampleFile,
    check_text_format,
    read_all,
    titled_documents,
)
from tests.helpers.corpora import (
    COMPRESS,
    MARK,
    as_bytes,
    as_json,
    as_parquet,
    as_wet,
    as_wiki,
    as_wikitext,
    wet_records,
)
from tests.helpers.documents import ROOT

# Formats of projects have tests of their own.
CORE_FORMATS = {
    name: TEXT_FORMATS[name]
    for name, module in TEXT_FORMATS.modules.items()
    if not module.startswith("projects.")
}
CORE_ENDINGS = [
    pattern.removeprefix("*")
    for pattern, module in ROW_FILES.modules.items()
    if not module.startswith("projects.")
]
# {format: (file, its bytes, a bad document, where the message finds it as the third one)}
EXAMPLES = {
    "text": ("a.txt", as_bytes, NOT_UTF8, r"a\.txt, line 7: expected UTF-8"),
    "jsonl": ("a.jsonl", as_json, None, r"a\.jsonl, line 3: expected text in the field 'text'"),
    "wiki": ("wiki_00", as_wiki, NOT_UTF8, "wiki_00, line 14: expected UTF-8"),
    "warc": ("a.wet", as_wet, NOT_UTF8, r"a\.wet, record 3: expected UTF-8"),
    "parquet": ("a.PARQUET", as_parquet, None, r"a\.PARQUET, record 3: expected text in 'text'"),
    "tfds": ("tfds:stories", None, NOT_UTF8, r"stories:train, record \d: expected UTF-8"),
}
# The same text in other forms: {file: (its bytes, options)}
TITLES = {"document_start": " = (?!=)"}
FORMS = {
    "mark.txt": (lambda d: MARK + as_bytes(d), {}),
    "crlf.txt": (lambda d: as_bytes(d, "\n", "\r\n"), {}),
    "cr.txt": (lambda d: as_bytes(d, "\n", "\r"), {}),
    "spaces.txt": (lambda d: as_bytes(d, "\n\n", "\n \t\n\n"), {}),
    "pages.txt": (lambda d: as_bytes(d, "\n\n", "\n\x0c\n"), {}),
    "concatenated.txt": (lambda d: MARK + as_bytes(d, "\n\n", "\n\n\ufeff"), {}),
    "nul.txt": (lambda d: as_bytes(d, "e", "e\0"), {}),
    "body.jsonl": (lambda d: as_json(d, field="body"), {"text_field": "body"}),
    "nan.JSONL": (lambda d: MARK + as_json(d, "NaN").replace(b"\n", b"\r\n"), {}),
    "long.json": (lambda d: as_json(d, "9" * 5000).replace(b"\n", b"\n\n" + MARK), {}),
    "infinite.ndjson": (lambda d: as_json(d, "1e999"), {}),
    "TEXT.NDJSON.GZ": (lambda d: gzip.compress(as_json(d)), {}),
    "no_ending": (lambda d: COMPRESS["bz2"](as_bytes(d)), {}),
    "members.wet.gz": (lambda d: b"".join(map(gzip.compress, wet_records(d))), {}),
    "wiki_mark": (lambda d: MARK + as_wiki(d), {}),
    "wiki.train.tokens": (as_wikitext, TITLES),
    "wiki.crlf.tokens": (lambda d: as_wikitext(d, "\r\n"), TITLES),
}


FORMS |= {
    f"{file}.{ending}": (lambda d, as_file=as_file, pack=pack: pack(as_file(d)), {})
    for ending, pack in COMPRESS.items()
    for name, (file, as_file, *_) in EXAMPLES.items()
    if CORE_FORMATS[name].parts is None
}


@pytest.mark.parametrize("name", [*CORE_FORMATS])
def test_a_text_format(name, tmp_path, monkeypatch):
    where = "EXAMPLES of tests/conformance/test_formats.py"
    assert name in EXAMPLES, f"{name}: write an example of a file in {where}"
    example = TextExampleFile(name, *EXAMPLES[name])
    check_text_format(example, titled_documents(name), tmp_path, monkeypatch)


@pytest.mark.parametrize("name", FORMS)
def test_another_form_of_a_text_format(name, tmp_path, monkeypatch):
    documents, (as_file, options) = titled_documents(name), FORMS[name]
    (tmp_path / name).write_bytes(as_file(documents))
    for size, batch_bytes in BLOCK_SIZES:
        monkeypatch.setattr(readers, "BATCH_BYTES", batch_bytes)
        monkeypatch.setattr(readers, "_PART_BYTES", batch_bytes // 3)
        found, counts, _ = read_all(tmp_path / name, monkeypatch, size, **options)
        assert found == documents
        marked = ("mark.txt", "concatenated.txt", "nul.txt", "wiki_mark")
        assert (counts["removed_characters"] > 0) == (name in marked)
        assert not counts["malformed_records"] and not counts["missing_texts"]
        assert counts["other_records"] == (".wet" in name)


PAGE = "docs/data_preparation.md"


def row_of_page(name, text_format):
    """(in the column of names, in the column of files, of parts, and of compression) of a row."""
    marks = [f"begin with `{text_format.mark.decode()}`"] if text_format.mark else []
    files = [*marks, *(f"`{ending}`" for ending in text_format.endings)]
    in_parts = "yes" if text_format.before or text_format.parts else "no"
    is_compressed = "yes" if text_format.is_file and not text_format.parts else "no"
    if not text_format.is_file:
        return "", f"`{name}:NAME:SPLIT`", in_parts, is_compressed
    return f"`{name}`", ", ".join(files) or "others", in_parts, is_compressed


def check_table(page, formats):
    """Raises `AssertionError` with the row to write unless a page has one of each format."""
    pattern = r"^\| (`\w+`)? ?\| (.*?) \| (.*) \| (yes|no) \| (yes|no) \|$"
    rows = {}
    for name, files, document, in_parts, is_compressed in re.findall(pattern, page, re.MULTILINE):
        rows[name or re.sub(":.*", "`", files)] = files, document, in_parts, is_compressed
    for name, text_format in formats.items():
        first, files, *others = row_of_page(name, text_format)
        row = rows.get(f"`{name}`")
        document = row[1] if row else "what a document is"
        line = f"| {first} | {files} | {document} | {' | '.join(others)} |"
        where = f"{PAGE}, the table of formats"
        assert row, f"{name}: write a row in {where}: {line}"
        assert (row[0], *row[2:]) == (files, *others), f"{name}: expected in {where}: {line}"
    unknown = rows.keys() - {f"`{name}`" for name in formats}
    assert not unknown, f"{PAGE} has rows of formats that are not registered: {sorted(unknown)}"
    names = [name.strip("`") for name in rows]
    assert names == [*formats], f"{PAGE}: expected rows in the order {', '.join(formats)}"


def test_the_table_of_the_documentation():
    """Names, endings, marks, and which are read in parts and compressed."""
    check_table((ROOT / PAGE).read_text(encoding="utf-8"), CORE_FORMATS)


def test_a_format_without_a_row_in_the_documentation_is_found():
    page = (ROOT / PAGE).read_text(encoding="utf-8")
    formats = {**CORE_FORMATS, "lines": CORE_FORMATS["jsonl"]}
    line = r"\| `lines` \| `\.jsonl`, `\.json`, `\.ndjson` \| what a document is \| yes \| yes \|"
    with pytest.raises(AssertionError, match=f"lines: write a row in {PAGE}, the table .*: {line}"):
        check_table(page, formats)
    changed = page.replace("`.jsonl`, `.json`, `.ndjson` |", "`.jsonl` |")
    with pytest.raises(
        AssertionError, match=r"jsonl: expected in .*: \| `jsonl` .* is a JSON object"
    ):
        check_table(changed, CORE_FORMATS)
    fewer = {name: x for name, x in CORE_FORMATS.items() if name != "wiki"}
    with pytest.raises(AssertionError, match=r"formats that are not registered: \['`wiki`'\]"):
        check_table(page, fewer)


def test_other_names_of_formats_are_refused(tmp_path):
    (tmp_path / "a.txt").write_text("some text\n")
    for name, error, message in (
        ("pdf", ConfigError, "format: expected one of text, jsonl, .*--import=MODULE"),
        ("tfds", DataError, "format: expected a format of files, got 'tfds'"),
    ):
        with pytest.raises(error, match=message):
            corpus.find_shards([str(tmp_path / "a.txt")], ReadOptions(format=name))


def as_arrow_stream(frame, path):
    """What HF's `save_to_disk` writes."""
    table = pa.Table.from_pandas(frame)
    with pa.ipc.new_stream(path, table.schema) as file:
        file.write_table(table, max_chunksize=2)


# {ending of a table: (writes a frame, where a row of another length is named if it can be written)}
TABLES = {
    ".csv": (lambda frame, path: frame.to_csv(path, index=False), "x,y,z\n", "line 4"),
    ".tsv": (
        lambda frame, path: frame.to_csv(path, sep="\t", quoting=3, index=False),
        "x\ty\tz\n",
        "line 4",
    ),
    ".parquet": (lambda frame, path: frame.to_parquet(path), None, None),
    **dict.fromkeys((".feather", ".ipc"), (lambda frame, path: frame.to_feather(path), None, None)),
    ".arrow": (as_arrow_stream, None, None),
    **dict.fromkeys(
        (".jsonl", ".json", ".ndjson"),
        (lambda frame, path: frame.to_json(path, orient="records", lines=True), "[1]\n", "line 3"),
    ),
}


@pytest.mark.parametrize("ending", CORE_ENDINGS)
def test_a_table_format(ending, tmp_path):
    where = "TABLES of tests/conformance/test_formats.py"
    assert ending in TABLES, f"{ending}: write how a table is written in {where}"
    (save, wrong, place), task = TABLES[ending], TaskConfig.create(name="classification")
    texts = [
        "the water",
        "naïve",
        "标题",
        "a, b",
        "a; b",
        "'",
        "\\",
        "|",
        "\u00a0",
        '"no" again',
        "[1]",
    ]
    labels = [*"xyxyxyxyxyx"]
    frame = pd.DataFrame({"text": texts, "label": labels})
    expected = [
        TextExample(str(n), (text,), label)
        for n, (text, label) in enumerate(zip(texts, labels, strict=True), 1)
    ]
    path = tmp_path / f"a{ending}"
    save(frame, path)
    plain = path.read_bytes()
    for packing, pack in {"": bytes, **(COMPRESS if wrong else {})}.items():
        packed = tmp_path / f"a{ending}.{packing}".rstrip(".")
        packed.write_bytes(pack(plain))
        assert read_task(str(packed), TaskConfig.create(name="classification")) == (expected, {})
    save(pd.DataFrame({"text": ["a", "b", "c"], "label": ["x", "y", None]}), path)
    with pytest.raises(DataError, match=rf"missing_labels 1.*a{ending}, row 3: expected a label"):
        read_task(str(path), task)
    if wrong:
        lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join([*lines[:-1], wrong, lines[-2]]))
        with pytest.raises(DataError, match=rf"malformed_rows 1.*a{ending}, {place}: expected"):
            read_task(str(path), task)


def test_a_folder_of_datasets_is_read_as_the_data_set(tmp_path):
    """With the names of classes; of several splits, one has to be chosen."""
    import datasets

    names = datasets.ClassLabel(names=["good", "bad"])
    features = datasets.Features({"text": datasets.Value("string"), "label": names})
    rows = {"text": ["a", "b", "c"], "label": [1, 0, 1]}
    split = datasets.Dataset.from_dict(rows, features=features)
    datasets.DatasetDict({"train": split, "test": split}).save_to_disk(tmp_path)
    found, _ = read_task(str(tmp_path / "test"), TaskConfig.create(name="classification"))
    assert [(x.texts, x.label) for x in found] == [
        (("a",), "bad"),
        (("b",), "good"),
        (("c",), "bad"),
    ]
    with pytest.raises(ConfigError, match=r"splits \(train, test\); pass one of them"):
        read_task(str(tmp_path), TaskConfig.create(name="classification"))
