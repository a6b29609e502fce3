"""Web archives: the texts of WARC files, and of Common Crawl's WET files, which have the same form.

A file is a sequence of records, in Common Crawl each a gzip member of its own:

    WARC/1.0                                   version
    WARC-Type: conversion                      header fields
    Content-Type: text/plain
    Content-Length: 16
                                               empty line
    A page.                                    content, then two line ends
    Its text

`conversion` records hold plain text (WET); `response` records hold what a server sent (WARC), of
which successful HTML and plain text is read; `resource` records hold a file. Others are skipped.
"""

from __future__ import annotations

import dataclasses
import email.message
import email.parser
import http.client
import io
import types
import zlib
from collections.abc import Iterator
from typing import Any

from official.xlnet.errors import require_data

MAX_RECORD_BYTES = 32 << 20
_MAX_LINE_BYTES = 1 << 16
MARK = b"WARC/1."
_HTML = ("text/html", "application/xhtml+xml")
_PLAIN = "text/plain"

# Elements whose content is not part of what a page says.
_SKIPPED = (
    *("script", "style", "noscript", "template", "svg", "iframe", "object", "head"),
    *("nav", "header", "footer", "aside", "form", "button", "select", "menu", "dialog"),
)
# Elements that make a line of their own, besides those of `lxml.html.defs.block_tags`.
_MORE_BLOCKS = (
    *("body", "br", "caption", "dd", "details", "dt", "figcaption", "legend", "li", "main"),
    *("section", "summary", "tbody", "td", "tfoot", "th", "thead", "tr"),
)


@dataclasses.dataclass(frozen=True)
class Page:
    """The text of a record.

    Attributes:
      text: the text; bytes where the record is plain text, whose encoding is not checked.
      is_cut: whether the record was longer than `MAX_RECORD_BYTES`; the rest is left out.
      skipped: why the record has no text, empty if it has: `other_records` are not pages,
        `failed_responses` have a status other than 200 or cannot be read, `other_media` are images
        and the like.
    """

    text: str | bytes
    is_cut: bool
    skipped: str = ""


def read_pages(stream: Any, path: str) -> Iterator[Page]:
    """Yields the pages of a web archive.

    Args:
      stream: the decompressed archive, a buffered binary file; it is not sought.
      path: path of the file, for errors.

    Raises:
      DataError: the file is not a web archive or ends within a record.
    """
    while header := _next_header(stream, path):
        length = header.get("Content-Length", "").strip()
        is_number = length.isascii() and length.isdecimal()
        require_data(is_number, path, "a Content-Length in every record", repr(length))
        content = _read(stream, min(int(length), MAX_RECORD_BYTES), path)
        is_cut = int(length) > len(content)
        for begin in range(len(content), int(length), MAX_RECORD_BYTES):
            _read(stream, min(int(length) - begin, MAX_RECORD_BYTES), path)
        try:
            yield Page(_text_of(header, content), is_cut)
        except _NoTextError as error:
            yield Page("", is_cut=False, skipped=str(error))


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


class _NoTextError(Exception):
    """A record without text; the message is `Page.skipped`."""


def _text_of(header: email.message.Message, content: bytes) -> str | bytes:
    """The text of a record; raises `_NoTextError` if it holds none."""
    kind = header.get("WARC-Type", "").strip().lower()
    if kind in ("conversion", "resource"):
        return _as_text(header, content)
    if kind != "response" or "application/http" not in header.get("Content-Type", ""):
        raise _NoTextError("other_records")
    try:
        socket = types.SimpleNamespace(makefile=lambda mode: io.BytesIO(content))
        response = http.client.HTTPResponse(socket)  # type: ignore[arg-type]
        response.begin()
        if response.status != http.client.OK:
            raise _NoTextError("failed_responses")
        return _as_text(response.headers, _decompressed(response))
    except (http.client.HTTPException, zlib.error, ValueError):
        # What servers send is not always what it says.
        raise _NoTextError("failed_responses") from None


def _as_text(header: email.message.Message, content: bytes) -> str | bytes:
    kind = header.get_content_type()
    if kind == _PLAIN:
        return content
    if kind in _HTML:
        return html_text(content, header.get_content_charset())
    raise _NoTextError("other_media")


def html_text(content: bytes, charset: str | None = None) -> str:
    r"""The text of a page of HTML, a line for each block; menus, forms and scripts are left out.

    Args:
      content: the page.
      charset: its encoding as the server gave it. Default: UTF-8 if it is that, else what the page
        says of itself.

    Example:
      >>> html_text(b"<nav>Home</nav><h1>Title</h1><p>Some <b>bold</b> text.</p>")
      'Title\nSome bold text.'
    """
    import lxml.etree
    import lxml.html.defs

    try:
        content.decode()
        charset = "utf-8"
    except UnicodeDecodeError:
        charset = charset if charset != "utf-8" else None
    try:
        parser = lxml.html.HTMLParser(encoding=charset, remove_comments=True, remove_pis=True)
    except LookupError:  # An encoding that does not exist.
        parser = lxml.html.HTMLParser(remove_comments=True, remove_pis=True)
    try:
        root = lxml.html.document_fromstring(content, parser=parser)
    except (lxml.etree.ParserError, lxml.etree.XMLSyntaxError):  # An empty page.
        return ""
    blocks = lxml.html.defs.block_tags.union(_MORE_BLOCKS)
    lxml.etree.strip_elements(root, *_SKIPPED, with_tail=False)
    pieces: list[str] = []
    for event, element in lxml.etree.iterwalk(root, events=("start", "end")):
        is_block = element.tag in blocks
        text = element.text if event == "start" else element.tail
        # Line ends in the source are spaces; only blocks make lines.
        words = " ".join((text or "").split("\n")).replace("\r", " ")
        pieces.append(f"\n{words}" if is_block else words)
    lines = (" ".join(line.split()) for line in "".join(pieces).split("\n"))
    return "\n".join(line for line in lines if line)


def _decompressed(response: http.client.HTTPResponse) -> bytes:
    """The body of a response. Common Crawl has undone encodings and renamed their fields."""
    try:
        body = response.read()
    except http.client.IncompleteRead as error:  # Crawlers cut long pages.
        body = error.partial
    encoding = (response.getheader("Content-Encoding") or "identity").strip().lower()
    if encoding in ("gzip", "x-gzip"):
        return zlib.decompressobj(wbits=31).decompress(body, MAX_RECORD_BYTES)
    if encoding == "deflate":
        return zlib.decompressobj().decompress(body, MAX_RECORD_BYTES)
    if encoding != "identity":
        raise ValueError(encoding)
    return body
