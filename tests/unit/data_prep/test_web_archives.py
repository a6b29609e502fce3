"""Web archives: records written by hand from the WARC standard, and what is read of them."""

import collections
import gzip
import io
import zlib

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


def response(body, *fields, status="200 OK", kind="text/html"):
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {kind}", *fields]
    content = "\r\n".join(lines).encode() + b"\r\n\r\n" + body
    return record("response", content, "application/http; msgtype=response")


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


def chunked(body, size):
    parts = [body[i : i + size] for i in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


PAGE = (
    "<html><head><title>Title</title><style>p {color: red}</style></head><body>"
    "<nav><ul><li>Home</li><li>About</li></ul></nav><h1>A  <i>naïve</i>\nheading</h1>"
    "<!-- a comment --><p>First<br>second &amp; <b>third</b>.</p><script>run('<p>no</p>')</script>"
    "tail<div>outer<p>inner</p>after</div><footer>All rights</footer></body></html>"
)
PAGE_LINES = ["A naïve heading", "First", "second & third.", "tail", "outer", "inner", "after"]


def test_responses(tmp_path):
    utf8 = PAGE.encode()
    latin = PAGE.replace("<head>", '<head><meta charset="iso-8859-1">').encode("latin-1")
    deflated = zlib.compress(utf8)
    records = [
        record("warcinfo", b"", "application/warc-fields"),
        record("request", b"GET / HTTP/1.1\r\n\r\n", "application/http; msgtype=request"),
        response(utf8, f"Content-Length: {len(utf8)}"),
        response(chunked(utf8, 7), "Transfer-Encoding: chunked"),
        response(gzip.compress(utf8), "Content-Encoding: gzip"),
        response(deflated, "Content-Encoding: deflate"),
        response(utf8, "X-Crawl-Content-Encoding: gzip", kind="application/xhtml+xml"),
        response(latin),
        response(PAGE.encode("latin-1"), kind="text/html; charset=ISO-8859-1"),
        response(utf8, "Content-Length: 99999"),  # Cut by the crawler.
        record("resource", utf8, "text/html"),
        response(utf8, status="404 Not Found"),
        response(b"\x89PNG", kind="image/png"),
        response(b"not gzip", "Content-Encoding: gzip"),
        response(utf8, "Content-Encoding: br"),
        record("response", b"no http at all", "application/http; msgtype=response"),
        record("metadata", b"fetchTimeMs: 3", "application/warc-fields"),
        response(b"", "Content-Length: 0"),
        response(b"Just text", kind="text/plain"),
    ]
    path = tmp_path / "crawl.warc.gz"
    path.write_bytes(b"".join(map(gzip.compress, records)))
    documents, counts = documents_of(path)
    assert documents == [PAGE_LINES] * 9 + [[], ["Just text"]]
    skipped = {"other_records": 3, "failed_responses": 4, "other_media": 1}
    assert {name: counts[name] for name in skipped} == skipped
    assert len(documents) + sum(skipped.values()) == len(records)


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
        (WET[1][:30], "expected a complete record, got the end of the file"),
        (WET[1] + b"garbage\r\n", r"expected a record that begins with WARC/1\., got b'garbage"),
        (b"WARC/1.0\r\nContent-Length: -3\r\n\r\n", "expected a Content-Length in every record"),
    ],
)
def test_damaged_archives_are_errors_that_name_the_file(content, message):
    with pytest.raises(DataError, match=message) as error:
        list(read_pages(io.BytesIO(content), "crawl.wet"))
    assert str(error.value).startswith("crawl.wet: ")
