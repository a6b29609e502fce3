"""WET files: records written by hand from the WARC standard, and what is read of them."""

import collections
import gzip
import io

import pytest

from data_prep.corpus import web_archives
from data_prep.corpus.corpus import find_shards
from data_prep.corpus.readers import read_documents
from data_prep.corpus.web_archives import read_pages
from data_prep.settings import ReadOptions
from official.xlnet.errors import DataError


def record(kind, content, content_type="text/plain", **fields):
    """A record of WARC 1.0 (ISO 28500): header, empty line, content, two line ends."""
    names = {"WARC-Type": kind, "WARC-Record-ID": "<urn:uuid:7d2c>", "Content-Type": content_type}
    names |= fields | {"Content-Length": str(len(content))}
    header = "".join(f"{name}: {value}\r\n" for name, value in names.items())
    return f"WARC/1.0\r\n{header}\r\n".encode() + content + b"\r\n\r\n"


WET = [
    record("warcinfo", b"Software-Info: ia-web-commons\r\n", "application/warc-fields"),
    record("conversion", "Erste Seite\nMit zwei Zeilen: äöü\n".encode()),
    record("conversion", b""),
    record("conversion", b"WARC/1.0\r\nis what this page is about\r\n\r\nTwo line ends"),
]
WET_DOCUMENTS = [
    ["Erste Seite", "Mit zwei Zeilen: äöü"],
    [],
    ["WARC/1.0", "is what this page is about", "Two line ends"],
]


def documents_of(path, **options):
    options = ReadOptions(**options)
    counts, reports = collections.Counter(), []
    (shard,) = find_shards([str(path)], options)
    batches = read_documents(shard, options, counts, reports.append)
    documents = [document for batch in batches for document in batch]
    assert sum(reports) == path.stat().st_size
    return documents, counts


@pytest.mark.parametrize("form", [".wet", ".warc.wet.gz", ".members.wet.gz"])
def test_wet(form, tmp_path):
    path = tmp_path / f"crawl{form}"
    parts = map(gzip.compress, WET) if form == ".members.wet.gz" else WET
    joined = b"".join(parts)
    path.write_bytes(gzip.compress(joined) if form == ".warc.wet.gz" else joined)
    documents, counts = documents_of(path)
    assert documents == WET_DOCUMENTS
    text = sum(len(line) for document in documents for line in document)
    assert counts["characters"] == text and counts["cut_documents"] == 0
    assert counts["other_records"] == 1


def test_long_records_are_cut_and_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(web_archives, "MAX_RECORD_BYTES", 11)
    path = tmp_path / "crawl.wet"
    path.write_bytes(record("conversion", b"word " * 50_000) + record("conversion", b"next"))
    documents, counts = documents_of(path)
    assert documents == [["word word w"], ["next"]] and counts["cut_documents"] == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"".join(WET)[:-20], "expected a complete record"),
        (b"WARC/1.0\r\nContent-Length: 99999999999999999999\r\n\r\nabc", "a complete record"),
        (WET[1][:30], "expected a Content-Length in every record"),
        (WET[1] + b"garbage\r\n", r"expected a record that begins with WARC/1\., got b'garbage"),
        (
            WET[0] + record("response", b"HTTP/1.1 200 OK\r\n\r\n<p>text</p>", "application/http"),
            "expected WET files, or texts that were extracted before, e.g. with trafilatura, got "
            "a WARC file with a response record",
        ),
        (b"WARC/1.0\r\nContent-Length: -3\r\n\r\n", "expected a Content-Length in every record"),
    ],
)
def test_damaged_archives_are_errors_that_name_the_file(content, message):
    with pytest.raises(DataError, match=message) as error:
        list(read_pages(io.BytesIO(content), "crawl.wet"))
    assert str(error.value).startswith("crawl.wet: ")
