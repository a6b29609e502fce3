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

import email.message
import email.parser
from collections.abc import Iterator
from typing import Any, NamedTuple

from official.xlnet.errors import require_data

MAX_RECORD_BYTES = 32 << 20
_MAX_LINE_BYTES = 1 << 16
MARK = b"WARC/1."
_WITHOUT_TEXT = ("response", "resource")


class Page(NamedTuple):
    """The text of a record, whose encoding is not checked.

    Attributes:
      text: the text.
      is_cut: whether the record was longer than `MAX_RECORD_BYTES`; the rest is left out.
    """

    text: bytes
    is_cut: bool


def read_pages(stream: Any, path: str) -> Iterator[Page | None]:
    """Yields the pages of a web archive, and None for each record that is not a page.

    Args:
      stream: the decompressed archive, a buffered binary file; it is not sought.
      path: path of the file, for errors.

    Raises:
      DataError: the file is not a web archive, ends within a record, or has pages whose text was
        not extracted.
    """
    while header := _next_header(stream, path):
        kind = header.get("WARC-Type", "").strip().lower()
        expected = "WET files, or texts that were extracted before, e.g. with trafilatura"
        require_data(kind not in _WITHOUT_TEXT, path, expected, f"a WARC file with a {kind} record")
        length = header.get("Content-Length", "").strip()
        is_number = length.isascii() and length.isdecimal()
        require_data(is_number, path, "a Content-Length in every record", repr(length))
        content = _read(stream, min(int(length), MAX_RECORD_BYTES), path)
        is_cut = int(length) > len(content)
        for begin in range(len(content), int(length), MAX_RECORD_BYTES):
            _read(stream, min(int(length) - begin, MAX_RECORD_BYTES), path)
        is_text = kind == "conversion" and header.get_content_type() == "text/plain"
        yield Page(content, is_cut) if is_text else None


def _next_header(stream: Any, path: str) -> email.message.Message | None:
    """The header fields of the next record; None at the end of the file."""
    while (line := stream.readline(_MAX_LINE_BYTES)) and not line.strip():
        pass
    if not line:
        return None
    is_record = line.startswith(MARK)
    require_data(is_record, path, f"a record that begins with {MARK.decode()}", repr(line[:40]))
    lines = []
    while (line := stream.readline(_MAX_LINE_BYTES)).strip():
        lines.append(line)
    require_data(bool(line), path, "a complete record", "the end of the file")
    return email.parser.BytesHeaderParser().parsebytes(b"".join(lines))


def _read(stream: Any, size: int, path: str) -> bytes:
    """The next bytes.

    Raises:
      DataError: there are fewer.
    """
    data = stream.read(size)
    missing = size - len(data)
    require_data(not missing, path, "a complete record", f"one that lacks {missing} bytes")
    return data
