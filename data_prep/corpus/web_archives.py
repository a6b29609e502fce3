"""Web archives: the texts of Common Crawl's WET files.

A file is a sequence of records, in Common Crawl each a gzip member of its own:

    WARC/1.0                                   version
    WARC-Type: conversion                      header fields
    Content-Type: text/plain
    Content-Length: 16
                                               empty line
    A page.                                    content, then two line ends
    Its text

`conversion` records hold plain text. Records with pages as servers sent them (WARC files) are
refused; others are skipped.
"""

from __future__ import annotations

import email.parser
from collections.abc import Iterator
from typing import Any

from data_prep.corpus.formats import TextReading, register_format
from official.xlnet.errors import require_data

MAX_RECORD_BYTES = 32 << 20
_MAX_LINE_BYTES = 1 << 16
MARK = b"WARC/1."
_WITHOUT_TEXT = ("response", "resource")


def read_pages(stream: Any, path: str) -> Iterator[bytes | None]:
    """Yields the texts of a web archive, undecoded, and None for each record that is not a page.

    Of a longer text, the first `MAX_RECORD_BYTES` are kept.

    Args:
      stream: the decompressed archive, a buffered binary file; it is not sought.
      path: path of the file, for errors.

    Raises:
      DataError: the file is not a web archive, ends within a record, or has pages whose text was
        not extracted.
    """
    while line := stream.readline(_MAX_LINE_BYTES):
        if not line.strip():
            continue
        expected = f"a record that begins with {MARK.decode()}"
        require_data(line.startswith(MARK), path, expected, repr(line[:40]))
        lines = iter(lambda: stream.readline(_MAX_LINE_BYTES).rstrip(), b"")
        header = email.parser.BytesHeaderParser().parsebytes(b"\n".join(lines))
        record_type = header.get("WARC-Type", "").strip().lower()
        expected = "WET files, or texts that were extracted before, e.g. with trafilatura"
        require_data(
            record_type not in _WITHOUT_TEXT,
            path,
            expected,
            f"a WARC file with a {record_type} record",
        )
        length = header.get("Content-Length", "").strip()
        is_number = length.isascii() and length.isdecimal()
        require_data(is_number, path, "a Content-Length in every record", repr(length))
        content, missing = b"", int(length)
        while block := stream.read(min(missing, MAX_RECORD_BYTES)):
            content, missing = content or block, missing - len(block)
        require_data(not missing, path, "a complete record", f"one that lacks {missing} bytes")
        is_text = record_type == "conversion" and header.get_content_type() == "text/plain"
        yield content if is_text else None


@register_format("warc", mark=MARK)
def web_archive(source: Any, reading: TextReading) -> Iterator[bytes]:
    """A page of Common Crawl's WET files: a `conversion` record."""
    for page in read_pages(source, reading.shard.path):
        if page is None:
            reading.counts["other_records"] += 1
            continue
        reading.counts["cut_documents"] += len(page) >= MAX_RECORD_BYTES
        yield page
