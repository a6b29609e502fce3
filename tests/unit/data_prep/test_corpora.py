"""Corpora as people have them: many forms, sizes, faults and edits."""

import bz2
import gzip
import lzma
import os
import random
import subprocess
import sys

import pytest
import zstandard

from data_prep.corpus import corpus, readers, web_archives
from data_prep.pipelines import prepare as pipeline
from data_prep.settings import ReadOptions
from official.xlnet.api.vocab import train_vocabulary
from official.xlnet.errors import DataError, XLNetError
from tests.helpers.compare import assert_refused
from tests.helpers.corpora import (
    MARK,
    as_bytes,
    as_json,
    as_parquet,
    as_text,
    contents,
    prepare,
    random_documents,
    read_all,
    warc_record,
    wet_records,
)


def test_text_without_an_end_is_cut_and_nothing_is_lost(tmp_path, monkeypatch):
    monkeypatch.setattr(readers, "MAX_DOCUMENT_BYTES", 256)
    monkeypatch.setattr(readers, "BATCH_BYTES", 64)
    monkeypatch.setattr(readers, "MAX_LINE_CHARS", 32)
    for separator in ("\n", " ", ""):
        text = separator.join(["wörter", "abc", "日本語"] * 300)
        (tmp_path / "text.txt").write_text(text, encoding="utf-8")
        for shard_bytes in (101, 1 << 20):
            monkeypatch.setattr(corpus, "shard_bytes", lambda _, size=shard_bytes: size)
            documents, counts = read_all(tmp_path / "text.txt")
            assert counts["cut_documents"] > 5
            assert (separator != "") or counts["cut_lines"] > 5
            joined = "".join(line for lines in documents for line in lines)
            assert joined.replace(" ", "") == text.replace("\n", "").replace(" ", "")


def test_broken_utf8_can_be_replaced(tmp_path):
    (tmp_path / "text.txt").write_bytes("a \ufffd b".encode() + b" \xff\xfe c\n")
    documents, counts = read_all(tmp_path / "text.txt", on_bad_utf8="replace")
    assert documents == [["a \ufffd b \ufffd\ufffd c"]] and counts["bad_bytes"] == 2


def test_long_records_of_an_archive_are_cut_and_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(web_archives, "MAX_RECORD_BYTES", 11)
    pages = warc_record("conversion", b"word " * 50_000), warc_record("conversion", b"next")
    (tmp_path / "crawl.wet").write_bytes(b"".join(pages))
    documents, counts = read_all(tmp_path / "crawl.wet")
    assert documents == [["word word w"], ["next"]] and counts["cut_documents"] == 1


# What is refused.

WET = b"".join(wet_records([["a page of some words, which is cut"]]))
TEXT = b"some words of text\n" * 99
REFUSED = {
    "table.csv": (b"text,label\nfine,1\n", "got a table by its name.*format=text"),
    "TABLE.TSV.GZ": (gzip.compress(b"a\tb\n"), "got a table by its name.*format=text"),
    "lines.txt": (b'\n{"text": "a\\"b"}\n{"text": "c"}\n', "looks like JSON lines.*format=jsonl"),
    "lines": (MARK + b'{ "long": "' + b"x" * 9999, "looks like JSON lines.*format=jsonl"),
    "array.json": (b'[\n{"text": "a"}]', r"an array; convert it with: jq -c '\.\[\]'"),
    "tree.json": (b'{\n"text": "a"\n}\n', r"3 of 3 records.*tree.json, line 1: expected a JSON"),
    "field.jsonl": (
        b'{"body": "a"}\n' * 9,
        r"line 1: expected text in the field 'text' \(text_f",
    ),
    "utf16.txt": ("a text\n".encode("utf-16"), "got UTF-16; convert it with: iconv -f UTF-16"),
    "plain16.txt": ("a text\n".encode("utf-16-le"), "got UTF-16; convert it with: iconv"),
    "latin.txt": ("Zürich\n".encode("latin-1"), "line 1: expected UTF-8.*iconv -f WINDOWS-1252"),
    "bytes.txt": (b"fine\nnot \xff fine\n", "bytes.txt, line 2: expected UTF-8, got the byte 0xff"),
    "word.docx": (b"PK\x03\x04\x14\0", "got a ZIP archive"),
    "paper.pdf": (b"%PDF-1.4\n%\xe2\xe3", "got a PDF document; extract its text with"),
    "empty.txt": (b"", "the files are empty"),
    "blank.txt": (b"\n \t\n\x0c\n", "no document remains"),
    "controls.txt": (b"\x01\x0b", "no document remains"),
    "short.txt": (b"too short\n", r"not enough text: \d+ tokens in 1 documents.* 33 are needed"),
    "cut.gz": (gzip.compress(TEXT)[:-20], "cut.gz: expected a complete"),
    "cut.bz2": (bz2.compress(TEXT)[:-20], "cut.bz2: expected a complete"),
    "cut.xz": (lzma.compress(TEXT)[:-20], "cut.xz: expected a complete"),
    "cut.zst": (zstandard.compress(TEXT)[:-9], "cut.zst: expected a complete"),
    "noise.gz": (b"no such thing" * 9, "noise.gz: expected a"),
    "bad.parquet": (b"PAR1 nothing", "bad.parquet: expected a Parquet file"),
    "column.parquet": (as_parquet([["a"]]), "expected a column 'b', got text", {"text_field": "b"}),
    "cut.wet": (WET[:-20], "cut.wet: expected a complete record"),
    "long.wet": (
        b"WARC/1.0\r\nContent-Length: 99999999999999999999\r\n\r\nabc",
        "a complete record",
    ),
    "header.wet": (WET[:30], "header.wet: expected a Content-Length in every record"),
    "minus.wet": (b"WARC/1.0\r\nContent-Length: -3\r\n\r\n", "expected a Content-Length in every"),
    "more.wet": (
        WET + b"garbage\r\n",
        r"expected a record that begins with WARC/1\., got b'garbage",
    ),
    "pages.warc": (
        warc_record("response", b"HTTP/1.1 200 OK\r\n\r\n<p>text</p>", "application/http"),
        "pages.warc: expected WET files, or texts .*, got a WARC file with a response record",
    ),
    "start.txt": (
        TEXT,
        "document_start: expected a regular exp",
        {"document_start": "("},
    ),
    "utf8.txt": (TEXT, "on_bad_utf8: expected one of error, repl", {"on_bad_utf8": "ignore"}),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_text_is_refused_with_what_to_do(tmp_path, name):
    data, message, *options = REFUSED[name]
    (tmp_path / name).write_bytes(data)
    with pytest.raises(XLNetError, match=message) as raised:
        prepare(tmp_path / name, tmp_path / "out", **dict(*options))
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "out" / "manifest.json").exists()


BAD_LINES = {
    "malformed_records": ['{"text": "cut', "[1, 2]", '{"text": 3}', '{"text": ["a"]}', "[" * 9999],
    "missing_texts": ['{"text": null}', '{"text": NaN}', '{"body": "a"}', "null"],
}


@pytest.mark.parametrize(("seed", "shard_bytes"), [(0, 997), (1, 1 << 20), (2, 997)])
def test_bad_records_are_counted_up_to_a_share(tmp_path, monkeypatch, caplog, seed, shard_bytes):
    monkeypatch.setattr(corpus, "shard_bytes", lambda _: shard_bytes)
    rng, path = random.Random(seed), tmp_path / "text.jsonl"
    lines = as_json(random_documents(rng, 61)).decode().split("\n")
    expected = {reason: rng.randint(1, 9) for reason in BAD_LINES}
    bad = [line for r, number in expected.items() for line in rng.choices(BAD_LINES[r], k=number)]
    for line in bad:
        lines.insert(rng.randrange(1, len(lines)), line)
    path.write_text("\n".join(lines), encoding="utf-8")
    share = len(bad) / len(lines)
    message = rf"{len(bad)} of {len(lines)} records.*see max_lost"
    with pytest.raises(XLNetError, match=message) as raised:
        prepare(path, tmp_path / "out", max_lost=share * 0.9)
    if shard_bytes > 997:
        first = min(lines.index(line) for line in bad) + 1
        assert f"text.jsonl, line {first}: expected" in str(raised.value)
    figures = prepare(path, tmp_path / "out", max_lost=share * 1.1)
    assert {reason: figures[reason] for reason in expected} == expected
    assert figures["documents"] == 61 and "cannot be used" in caplog.text
    assert figures["resumed_shards"] > 0
    with pytest.raises(DataError, match=r"records cannot be used.*max_lost"):
        train_vocabulary(path, tmp_path / "vocab", 211, max_lost=share * 0.9)
    train_vocabulary(path, tmp_path / "vocab", 100, max_lost=share * 1.1)


# Text that was edited since.


@pytest.mark.parametrize(
    ("ending", "write"),
    [
        ("txt", as_bytes),
        ("txt.gz", lambda d: gzip.compress(as_bytes(d), compresslevel=0)),
        ("parquet", as_parquet),
    ],
)
def test_edited_text_is_refused_and_a_copy_is_not(tmp_path, monkeypatch, ending, write):
    monkeypatch.setattr(corpus, "shard_bytes", lambda _: 997)
    documents, path = random_documents(random.Random(3), 40), tmp_path / f"text.{ending}"
    path.write_bytes(write(documents))
    (tmp_path / "more.txt").write_text(as_text(random_documents(random.Random(4), 3)))
    inputs = [path, tmp_path / "more.txt"]
    expected = prepare(inputs, tmp_path / "out")
    before = contents(tmp_path / "out", "*.tfrecord")
    os.utime(path, ns=(1, 1))  # A copy that was restored.
    again = prepare(inputs, tmp_path / "out")
    assert again == {k: n for k, n in expected.items() if not k.startswith("resumed")}
    size = path.stat().st_size
    documents[-1][-1] = documents[-1][-1][::-1]
    path.write_bytes(write(documents))
    assert path.stat().st_size == size
    assert_refused(
        rf"the input was edited since \(see .*text.{ending}\)", prepare, inputs, tmp_path / "out"
    )
    assert contents(tmp_path / "out", "*.tfrecord") == before


def test_text_that_is_edited_meanwhile_is_an_error(tmp_path, monkeypatch):
    path, write = tmp_path / "text.txt", pipeline.write_lane
    path.write_text(as_text(random_documents(random.Random(3), 40)))

    def edit(*arguments):
        path.write_text(path.read_text()[::-1])
        return write(*arguments)

    monkeypatch.setattr(pipeline, "write_lane", edit)
    assert_refused(
        r"was changed while it was prepared \(see .*text.txt\)", prepare, path, tmp_path / "out"
    )
    assert not (tmp_path / "out" / "manifest.json").exists()
    monkeypatch.setattr(pipeline, "write_lane", write)
    prepare(path, tmp_path / "out")
    prepare(path, tmp_path / "new")
    assert contents(tmp_path / "out", "*.tfrecord") == contents(tmp_path / "new", "*.tfrecord")


@pytest.mark.parametrize(
    ("inputs", "times"),
    [
        (["a.txt:3", "b.txt"], {"a": 3, "b": 1}),
        (["*.txt:2"], {"a": 2, "b": 2}),
        (["*.txt", "a.txt"], {"a": 2, "b": 1}),
        (["b.txt", "b.txt", "a.txt:10"], {"a": 10, "b": 2}),
        (["c:3"], {"c": 1}),
    ],
)
def test_files_count_by_their_weights(inputs, times, tmp_path):
    """A name that ends like a weight is that of a file if there is one."""
    for name in ("a.txt", "b.txt", "c:3"):
        (tmp_path / name).write_text(f"{name[0]} text\n")
    shards = corpus.find_shards([str(tmp_path / name) for name in inputs], ReadOptions())
    found = [os.path.basename(shard.path)[0] for shard in shards]
    assert {name: found.count(name) for name in sorted(set(found))} == times
    assert found[: len(times)] == list(dict.fromkeys(found))  # All of them come first.


def test_a_script_without_a_guard_prepares_with_several_workers(tmp_path):
    """Worker processes do not run the script again."""
    (tmp_path / "a.txt").write_text(as_text(random_documents(random.Random(3), 40)))
    script = f"""
from tests.helpers.corpora import prepare
open("{tmp_path}/ran", "a").write("once ")
prepare(["{tmp_path}/a.txt:2"], "{tmp_path}/out", num_workers=2)
"""
    (tmp_path / "script.py").write_text(script)
    environment = {**os.environ, "PYTHONPATH": os.getcwd()}
    subprocess.run([sys.executable, tmp_path / "script.py"], check=True, env=environment)
    assert (tmp_path / "ran").read_text() == "once "
    assert (tmp_path / "out/manifest.json").exists()
