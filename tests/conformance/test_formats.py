"""Every format of text and of tables, drawn from their tables: written, read, divided, damaged."""

import gzip
import random
import re

import pandas as pd
import pyarrow as pa
import pytest
from Bio import SeqIO
from Bio.Seq import Seq
from Bio.SeqRecord import SeqRecord

from data_prep.corpus import corpus, readers, text_formats
from data_prep.corpus.formats import TEXT_FORMATS
from data_prep.settings import ReadOptions
from data_prep.tasks.table_files import TABLE_FORMATS
from data_prep.tasks.task_data import read_task, stream_task
from data_prep.tasks.text_rows import read_text_rows
from official.xlnet.configs.task import TaskConfig
from official.xlnet.data.examples import TextExample
from official.xlnet.errors import ConfigError, DataError
from official.xlnet.jobs.vocabulary import train_vocabulary
from tests.helpers import corpora
from tests.helpers.corpora import (
    COMPRESS,
    MARK,
    as_bytes,
    as_fasta,
    as_json,
    as_parquet,
    as_wet,
    as_wiki,
    as_wikitext,
    random_documents,
    store_tfds,
    wet_records,
)
from tests.helpers.documents import ROOT

NOT_UTF8 = ["\udcff"]
# {format: (file, its bytes, a bad document, where the message finds it as the third one)}
EXAMPLES = {
    "text": ("a.txt", as_bytes, NOT_UTF8, r"a\.txt, line 7: expected UTF-8"),
    "jsonl": ("a.jsonl", as_json, None, r"a\.jsonl, line 3: expected text in the field 'text'"),
    "wiki": ("wiki_00", as_wiki, NOT_UTF8, "wiki_00, line 14: expected UTF-8"),
    "fasta": ("a.faa", as_fasta, NOT_UTF8, r"a\.faa, line 6: expected UTF-8"),
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
    "fasta.txt": (lambda d: MARK + as_fasta(d).replace(b"\n", b"\r\n"), {}),
    "fasta_mark.gz": (lambda d: gzip.compress(as_fasta(d)), {}),
    "wiki.train.tokens": (as_wikitext, TITLES),
    "wiki.crlf.tokens": (lambda d: as_wikitext(d, "\r\n"), TITLES),
}


FORMS |= {
    f"{file}.{ending}": (lambda d, as_file=as_file, pack=pack: pack(as_file(d)), {})
    for ending, pack in COMPRESS.items()
    for name, (file, as_file, *_) in EXAMPLES.items()
    if TEXT_FORMATS[name].parts is None
}


def titled_documents(seed):
    documents = random_documents(random.Random(seed), 23)
    if str(seed).startswith(("fasta", "a.faa")):
        return [[re.sub(r"\W", "", "".join(lines))] for lines in documents]
    return [[f"= Title {n} =", "= = Part = =", "WARC/1.0", *d] for n, d in enumerate(documents)]


def read_all(path, monkeypatch, size=1 << 20, **options):
    """Documents of a file in parts of a size, what was counted, and the number of parts."""
    monkeypatch.setattr(corpus, "shard_bytes", lambda _: size)
    monkeypatch.setattr(text_formats, "_EXAMPLES_PER_SHARD", 7)
    documents, counts = corpora.read_all(path, **options)
    shards = corpus.find_shards([str(path)], ReadOptions(**options))
    assert counts.pop("reported") == sum(shard.num_bytes for shard in shards)
    return documents, counts, len(shards)


def write(name, documents, directory, monkeypatch):
    """Writes documents in a format; returns what `--input` is."""
    file, as_file, *_ = EXAMPLES[name]
    if as_file is None:
        store_tfds(documents, directory / str(len(documents)), monkeypatch)
        return file
    (directory / file).write_bytes(as_file(documents))
    return directory / file


@pytest.mark.parametrize("name", TEXT_FORMATS)
def test_a_text_format(name, tmp_path, monkeypatch):
    assert name in EXAMPLES, "an example of each format, here"
    documents, form = titled_documents(name), TEXT_FORMATS[name]
    path = write(name, documents, tmp_path, monkeypatch)
    expected = sorted(documents) if name == "tfds" else documents
    for size, batch_bytes in ((61, 53), (499, 1 << 20), (1 << 20, 53)):
        monkeypatch.setattr(readers, "BATCH_BYTES", batch_bytes)
        found, counts, parts = read_all(path, monkeypatch, size)
        assert (sorted(found) if name == "tfds" else found) == expected
        assert counts["characters"] == sum(len(line) for lines in documents for line in lines)
        assert counts["bytes"] >= counts["characters"]
        assert not {*counts} & {"malformed_records", "missing_texts", "removed_characters"}
        assert (parts > 1) == bool(((form.before or form.parts) and size < 1000) or name == "tfds")
    *_, bad, place = EXAMPLES[name]
    documents = (
        [["a"], ["c"], bad, ["e"]] if name == "fasta" else [["a", "b"], ["c", "d"], bad, ["e"]]
    )
    path = write(name, documents, tmp_path, monkeypatch)
    if bad is None:
        _, counts, _ = read_all(path, monkeypatch)
        assert counts["missing_texts"] == 1 and re.search(place, counts.first_lost)
    else:
        with pytest.raises(DataError, match=place):
            read_all(path, monkeypatch)


@pytest.mark.parametrize("name", FORMS)
def test_another_form_of_a_text_format(name, tmp_path, monkeypatch):
    documents, (as_file, options) = titled_documents(name), FORMS[name]
    (tmp_path / name).write_bytes(as_file(documents))
    for size, batch_bytes in ((61, 53), (499, 1 << 20), (1 << 20, 53)):
        monkeypatch.setattr(readers, "BATCH_BYTES", batch_bytes)
        found, counts, _ = read_all(tmp_path / name, monkeypatch, size, **options)
        assert found == documents
        marked = ("mark.txt", "concatenated.txt", "nul.txt", "wiki_mark", "fasta.txt")
        assert (counts["removed_characters"] > 0) == (name in marked)
        assert not counts["malformed_records"] and not counts["missing_texts"]
        assert counts["other_records"] == (".wet" in name)


def test_the_table_of_the_documentation():
    """Names, endings, marks, and which are read in parts and compressed."""
    page = (ROOT / "docs/data_preparation.md").read_text(encoding="utf-8")
    row = r"^\| (?:`(\w+)`)? \| (.*?) \| .* \| (yes|no) \| (yes|no) \|$"
    rows = re.findall(row, page, re.MULTILINE)
    assert [name or "tfds" for name, *_ in rows] == [*TEXT_FORMATS]
    for (_, files, in_parts, compressed), form in zip(rows, TEXT_FORMATS.values(), strict=True):
        assert (in_parts == "yes") == bool(form.before or form.parts)
        assert (compressed == "yes") == (form.is_file and not form.parts)
        named = {x.encode() for x in re.findall("`([^`]+)`", files)} if form.is_file else set()
        assert named == {*map(str.encode, form.endings), *filter(None, [form.mark])}, files


def test_other_names_of_formats_are_refused(tmp_path):
    (tmp_path / "a.txt").write_text("some text\n")
    for name, error, message in (
        ("pdf", ConfigError, "format: expected one of text, jsonl, .*--import=MODULE"),
        ("tfds", DataError, "format: expected a format of files, got 'tfds'"),
    ):
        with pytest.raises(error, match=message):
            corpus.find_shards([str(tmp_path / "a.txt")], ReadOptions(format=name))


def test_sequences_that_biopython_writes_come_with_their_ids(tmp_path):
    """In rows to score and to predict, by the name or the first byte; quotes of mail are text."""
    rng = random.Random(0)
    records = [
        SeqRecord(
            Seq("".join(rng.choices("ACDEFGHIKLMNPQRSTVWY", k=size))), f"sp|P{size}", "", "x y"
        )
        for size in (1, 60, 61, 700)
    ]
    SeqIO.write(records, tmp_path / "a.fasta", "fasta")
    content = (tmp_path / "a.fasta").read_bytes()
    (tmp_path / "b.txt").write_bytes(content)
    (tmp_path / "c.faa.gz").write_bytes(gzip.compress(content.replace(b"\n", b"\r\n")))
    expected = [(record.id, str(record.seq)) for record in records]
    one, two = (TaskConfig(name="classification", text_columns=x) for x in (["seq"], ["a", "b"]))
    for path in (str(tmp_path / name) for name in ("a.fasta", "b.txt", "c.faa.gz")):
        assert [(row["id"], row["text"]) for row in read_text_rows([], path)] == expected
        assert [(x.id, *x.texts) for x in stream_task(path, one)] == expected
        with pytest.raises(DataError, match=r"expected a column .a., got id .*sequence"):
            list(stream_task(path, two))
    path = tmp_path / "mail.txt"
    path.write_text("> Is it true?\nIt is true.\n")
    assert [row["text"] for row in read_text_rows([], str(path))] == [
        "> Is it true?",
        "It is true.",
    ]
    assert corpora.read_all(path)[0] == [["> Is it true?", "It is true."]]
    for name, error in ((path, "malformed_records 1"), ("no", "a header, which begins with >")):
        (tmp_path / "no").write_text("ACGT\n")
        with pytest.raises(DataError, match=error):
            train_vocabulary([str(tmp_path / name)], str(tmp_path / "v"), 40, format="fasta")


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


@pytest.mark.parametrize("ending", TABLE_FORMATS)
def test_a_table_format(ending, tmp_path):
    assert ending in TABLES, "a table of each format, here"
    (save, wrong, place), task = TABLES[ending], TaskConfig(name="classification")
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
        assert read_task(str(packed), TaskConfig(name="classification")) == (expected, {})
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
    found, _ = read_task(str(tmp_path / "test"), TaskConfig(name="classification"))
    assert [(x.texts, x.label) for x in found] == [
        (("a",), "bad"),
        (("b",), "good"),
        (("c",), "bad"),
    ]
    with pytest.raises(ConfigError, match=r"splits \(train, test\); pass one of them"):
        read_task(str(tmp_path), TaskConfig(name="classification"))
