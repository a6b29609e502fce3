"""Corpora as people have them: many forms, sizes, faults and edits. Needs no TensorFlow."""

import bz2
import gzip
import json
import os
import pathlib
import random
import struct

import pyarrow
import pyarrow.parquet as pq
import pytest

from data_prep.corpus import corpus, vocabulary
from data_prep.pipelines import prepare as pipeline
from data_prep.pipelines.prepare import prepare
from official.xlnet.data.schema import Manifest
from official.xlnet.errors import DataError
from official.xlnet.tokenization.special_tokens import EOD_ID
from official.xlnet.tokenization.tokenizer import Tokenizer
from tests.helpers.corpora import WORDS, as_text, data_config, random_documents, vocabulary_dir


def run(inputs, output, **changes):
    options = {
        key: changes.pop(key) for key in list(changes) if key not in vars(data_config().data)
    }
    config = data_config(**changes)
    return prepare(inputs, vocabulary_dir(), config, output, num_workers=1, **options)


def records(directory):
    """{file name: bytes} of the record files of a data set."""
    return {path.name: path.read_bytes() for path in pathlib.Path(directory).glob("*.tfrecord")}


# The same documents in many forms.


def as_json(documents, rng, number="7"):
    lines = []
    for document in documents:
        text = json.dumps("\n".join(document), ensure_ascii=rng.random() < 0.5)
        lines.append(f'{{"score": {number}, "text": {text}, "text_": null}}')
    return "\n".join(lines).encode()


def as_wiki(documents):
    pages = ("\n".join(document) for document in documents)
    return "".join(f'<doc id="{i}">\n{page}\n</doc>\n' for i, page in enumerate(pages)).encode()


def as_wet(documents):
    records = [b"WARC/1.0\r\nWARC-Type: warcinfo\r\nContent-Length: 2\r\n\r\nhi\r\n\r\n"]
    for document in documents:
        text = "\n".join(document).encode()
        head = "WARC/1.0\r\nWARC-Type: conversion\r\nContent-Type: text/plain\r\nContent-Length: "
        records.append(f"{head}{len(text)}\r\n\r\n".encode() + text + b"\r\n\r\n")
    return b"".join(records)


def as_parquet(documents):
    sink = pyarrow.BufferOutputStream()
    texts = ["\n".join(document) for document in documents]
    pq.write_table(pyarrow.table({"text": texts}), sink, compression="NONE", use_dictionary=False)
    return sink.getvalue().to_pybytes()


MARK = b"\xef\xbb\xbf"
FORMS = {
    "mark.txt": lambda d, r: MARK + as_text(d).encode(),
    "crlf.txt": lambda d, r: as_text(d).replace("\n", "\r\n").encode(),
    "cr.txt": lambda d, r: as_text(d).replace("\n", "\r").encode(),
    "spaces.txt": lambda d, r: as_text(d).replace("\n\n", "\n \t\n\n").encode(),
    "pages.txt": lambda d, r: as_text(d).replace("\n\n", "\n\x0c\n").encode(),
    "concatenated.txt": lambda d, r: MARK + as_text(d).replace("\n\n", "\n\n\ufeff").encode(),
    "nul.txt": lambda d, r: as_text(d).replace("e", "e\0", 5).encode(),
    "TEXT.TXT.GZ": lambda d, r: gzip.compress(as_text(d).encode()),
    "no_ending": lambda d, r: bz2.compress(as_text(d).encode()),
    "text.jsonl": as_json,
    "nan.JSONL": lambda d, r: MARK + as_json(d, r, "NaN").replace(b"\n", b"\r\n"),
    "long.json": lambda d, r: as_json(d, r, "9" * 5000).replace(b"\n", b"\n\n" + MARK),
    "text.ndjson.gz": lambda d, r: gzip.compress(as_json(d, r, "1e999")),
    "wiki_00": lambda d, r: as_wiki(d),
    "wiki_mark": lambda d, r: MARK + as_wiki(d),
    "text.warc.wet": lambda d, r: as_wet(d),
    "text.PARQUET": lambda d, r: as_parquet(d),
}


@pytest.mark.parametrize("name", FORMS)
def test_the_same_documents_in_any_form_are_the_same_records(tmp_path, name):
    rng = random.Random(name)
    documents = random_documents(rng, 40)
    (tmp_path / "text.txt").write_text(as_text(documents), encoding="utf-8")
    (tmp_path / name).write_bytes(FORMS[name](documents, rng))
    run(tmp_path / "text.txt", tmp_path / "out", heldout_fraction=0.1)
    figures = run([tmp_path / name], tmp_path / "other", heldout_fraction=0.1)
    assert records(tmp_path / "out") == records(tmp_path / "other")
    assert figures["documents"] == 40
    assert figures["malformed_records"] == figures["missing_texts"] == figures["empty_files"] == 0
    assert (figures.get("removed_characters", 0) > 0) == any(
        word in name for word in ("mark.txt", "concatenated", "nul.", "wiki_mark")
    )


REFUSED = {
    "table.csv": (b"text,label\nfine,1\n", "got a table by its name.*--format=text"),
    "TABLE.TSV.GZ": (gzip.compress(b"a\tb\n"), "got a table by its name.*--format=text"),
    "lines.txt": (b'\n{"text": "a\\"b"}\n{"text": "c"}\n', "looks like JSON lines.*--format=jsonl"),
    "lines": (MARK + b'{ "long": "' + b"x" * 9999, "looks like JSON lines.*--format=jsonl"),
    "array.json": (b'[\n{"text": "a"}]', r"an array; convert it with: jq -c '\.\[\]'"),
    "tree.json": (b'{\n"text": "a"\n}\n', r"3 of 3 records.*tree.json, line 1: expected a JSON"),
    "utf16.txt": ("a text\n".encode("utf-16"), "got UTF-16; convert it with: iconv -f UTF-16"),
    "plain16.txt": ("a text\n".encode("utf-16-le"), "got UTF-16; convert it with: iconv"),
    "latin.txt": ("Zürich\n".encode("latin-1"), "line 1: expected UTF-8.*iconv -f WINDOWS-1252"),
    "word.docx": (b"PK\x03\x04\x14\0", "got a ZIP archive"),
    "paper.pdf": (b"%PDF-1.4\n%\xe2\xe3", "got a PDF document; extract its text with"),
    "empty.txt": (b"", "the files are empty"),
    "blank.txt": (b"\n \t\n\x0c\n", "no document remains"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_text_is_refused_with_what_to_do(tmp_path, name):
    data, message = REFUSED[name]
    (tmp_path / name).write_bytes(data)
    with pytest.raises(DataError, match=message) as raised:
        run(tmp_path / name, tmp_path / "out")
    assert "\n" not in str(raised.value)


# Records that cannot be read.

BAD_LINES = {
    "malformed_records": ['{"text": "cut', "[1, 2]", '{"text": 3}', '{"text": ["a"]}', "[" * 9999],
    "missing_texts": ['{"text": null}', '{"text": NaN}', '{"body": "a"}', "null"],
}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("shard_bytes", [997, 1 << 20])
def test_bad_records_are_counted_up_to_a_share(tmp_path, monkeypatch, caplog, seed, shard_bytes):
    monkeypatch.setattr(corpus, "shard_bytes", lambda _: shard_bytes)
    rng = random.Random(seed)
    documents = random_documents(rng, 61)
    lines = as_json(documents, rng).decode().split("\n")
    expected = {}
    for reason, bad in BAD_LINES.items():
        expected[reason] = rng.randint(1, 9)
        for _ in range(expected[reason]):
            lines.insert(rng.randrange(1, len(lines)), rng.choice(bad))
    path = tmp_path / "text.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    number = sum(expected.values())
    share = number / (61 + number)
    message = rf"{number} of {61 + number} records.*--max_lost"
    with pytest.raises(DataError, match=message) as raised:
        run(path, tmp_path / "out", max_lost=share * 0.9)
    good = lines_of(documents, lines)
    first = next(i for i, line in enumerate(lines, start=1) if line not in good)
    if shard_bytes > 997:
        assert f"text.jsonl, line {first}: expected" in str(raised.value)
    figures = run(path, tmp_path / "out", max_lost=share * 1.1)
    assert {reason: figures[reason] for reason in expected} == expected
    assert figures["documents"] == 61 and "cannot be used" in caplog.text
    assert figures["resumed_shards"] > 0
    with pytest.raises(DataError, match=r"records cannot be used.*--max_lost"):
        vocabulary.train_vocabulary(path, tmp_path / "vocab", 211, max_lost=share * 0.9)
    vocabulary.train_vocabulary(path, tmp_path / "vocab", 100, max_lost=share * 1.1)


def lines_of(documents, lines):
    """The lines that hold a document."""
    texts = {"\n".join(document) for document in documents}
    good = set()
    for line in lines:
        try:
            if json.loads(line)["text"] in texts:
                good.add(line)
        except (ValueError, TypeError, KeyError, RecursionError):
            continue
    return good


# Text that was edited since.


@pytest.mark.parametrize("ending", ["txt", "txt.gz", "parquet"])
def test_edited_text_is_refused_and_a_copy_is_not(tmp_path, monkeypatch, ending):
    monkeypatch.setattr(corpus, "shard_bytes", lambda _: 997)
    documents = random_documents(random.Random(3), 40)
    write = {
        "txt": lambda d: as_text(d).encode(),
        "txt.gz": lambda d: gzip.compress(as_text(d).encode(), compresslevel=0),
        "parquet": as_parquet,
    }[ending]
    path = tmp_path / f"text.{ending}"
    path.write_bytes(write(documents))
    (tmp_path / "more.txt").write_text(as_text(random_documents(random.Random(4), 3)))
    inputs = [path, tmp_path / "more.txt"]
    expected = run(inputs, tmp_path / "out")
    before = records(tmp_path / "out")
    os.utime(path, ns=(1, 1))  # A copy that was restored.
    again = run(inputs, tmp_path / "out")
    assert again == {k: n for k, n in expected.items() if not k.startswith("resumed")}
    assert records(tmp_path / "out") == before
    size = path.stat().st_size
    documents[-1][-1] = documents[-1][-1][::-1]
    path.write_bytes(write(documents))
    assert path.stat().st_size == size
    with pytest.raises(DataError, match=rf"the input was edited since \(see .*text.{ending}\)"):
        run(inputs, tmp_path / "out")
    assert records(tmp_path / "out") == before
    # A data set of an earlier version, which does not say what it was made from.
    manifest = Manifest.load(str(tmp_path / "out"))
    manifest.source.pop("content"), manifest.source.pop("versions")
    manifest.save(str(tmp_path / "out"))
    assert run(inputs, tmp_path / "out") == again


def test_text_that_is_edited_meanwhile_is_an_error(tmp_path, monkeypatch):
    path = tmp_path / "text.txt"
    path.write_text(as_text(random_documents(random.Random(3), 40)))
    write = pipeline.write_lane

    def edit(*arguments):
        path.write_text(path.read_text()[::-1])
        return write(*arguments)

    monkeypatch.setattr(pipeline, "write_lane", edit)
    with pytest.raises(DataError, match=r"was changed while it was prepared \(see .*text.txt\)"):
        run(path, tmp_path / "out")
    assert not (tmp_path / "out" / "manifest.json").exists()
    monkeypatch.setattr(pipeline, "write_lane", write)
    run(path, tmp_path / "out")
    run(path, tmp_path / "new")
    assert records(tmp_path / "out") == records(tmp_path / "new")


# Held-out text.


def token_ids(record):
    """The token ids of a serialized example, by the wire format of protocol buffers."""
    fields = dict(_fields(record))  # Example: 1 is Features, a map of name to Feature.
    for _, entry in _fields(fields[1]):
        name, feature = dict(_fields(entry)).values()
        if name == b"token_ids":
            ((_, int64_list),) = _fields(feature)
            ((_, packed),) = _fields(int64_list)
            ids = []
            while packed:
                value, packed = _varint(packed)
                ids.append(value)
            return ids
    raise AssertionError("no token_ids")


def _fields(message):
    while message:
        key, message = _varint(message)
        assert key & 7 == 2, "expected fields with a length"
        size, message = _varint(message)
        yield key >> 3, message[:size]
        message = message[size:]


def _varint(data):
    value = shift = 0
    for place, byte in enumerate(data, start=1):
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, data[place:]
    raise AssertionError("no number")


def documents_of(directory, split, reuse_len=11):
    """The documents of a split, as its forward lanes hold them; the last one may be cut."""
    documents = [[]]
    for name in list(split.files)[::2]:
        data = (directory / name).read_bytes()
        while data:
            (size,) = struct.unpack("<Q", data[:8])
            for token in token_ids(data[12 : 12 + size])[:reuse_len]:
                documents[-1].append(token)
                if token == EOD_ID:
                    documents.append([])
            data = data[size + 16 :]
    return documents


@pytest.mark.parametrize("seed", range(20))
def test_held_out_text_is_a_share_of_tokens_whatever_the_sizes_of_documents(
    tmp_path, monkeypatch, caplog, seed
):
    rng = random.Random(seed)
    fraction = rng.choice([0.02, 0.05, 0.1, 0.3, 0.7])
    tail, number = rng.choice([0.4, 0.8, 1.3]), rng.choice([1, 2, 3, 10, 50])
    sizes = [min(1500, int(20 * rng.paretovariate(tail))) for _ in range(number)]
    ends = rng.choice([[""], ["", "", ".", "?"]])
    texts = [" ".join(rng.choice(WORDS) + rng.choice(ends) for _ in range(n)) for n in sizes]
    if rng.random() < 0.3:
        texts += rng.choices(texts, k=3)
    (tmp_path / "text.txt").write_text("\n\n".join(texts) + "\n", encoding="utf-8")
    options = dict(heldout_fraction=fraction, num_lanes=2, seed=seed)
    options["drop_duplicates"] = rng.random() < 0.5
    figures = run(tmp_path / "text.txt", tmp_path / "out", **options)
    splits = Manifest.load(str(tmp_path / "out")).splits
    total = sum(split.tokens for split in splits.values())
    if "heldout" in splits:
        deviation = 0.5 * min(fraction, 1 - fraction) * total
        assert 26 <= splits["heldout"].tokens <= max(fraction * total + deviation, 2 * 26)
        assert splits["heldout"].tokens >= fraction * (total - 2) - deviation
        assert "held-out" not in caplog.text
    else:
        assert fraction * total < 26 or len(set(texts)) < len(texts)
        assert "no held-out split: data.heldout_fraction=" in caplog.text
    # Every token is in one split; a divided document has an EOD in each.
    tokenizer = Tokenizer(f"{vocabulary_dir()}/spiece.model")
    kept = dict.fromkeys(texts) if options["drop_duplicates"] else texts
    whole = [[*tokenizer.encode(text), EOD_ID] for text in kept]
    assert total == sum(map(len, whole)) + figures["divided_documents"]
    assert figures["documents"] == len(whole) + figures["divided_documents"]
    streams = {name: documents_of(tmp_path / "out", split) for name, split in splits.items()}
    *complete, cut = streams["train"]
    known = {tuple(document) for document in complete}
    for end in streams.get("heldout", [])[:-1]:
        # It is the end of a document; what is before it is in the other split, but at its end.
        beginnings = [document[: -len(end)] for document in whole if document[-len(end) :] == end]
        assert any(
            not beginning or (*beginning, EOD_ID) in known or beginning[: len(cut)] == cut
            for beginning in beginnings
        )
    monkeypatch.setattr(corpus, "shard_bytes", lambda _: 1999)
    run(tmp_path / "text.txt", tmp_path / "shards", **options)
    assert records(tmp_path / "out") == records(tmp_path / "shards")


# Vocabularies of text without spaces.
