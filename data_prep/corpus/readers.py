r"""Document readers: plain text, WikiExtractor output, JSON lines, web archives, Parquet and TFDS.

A document is a list of paragraphs: non-empty lines, stripped of whitespace. In plain text,
documents are separated by blank lines, or begin where `document_start` says; in the other formats,
every record is a document. Line ends
are `\n`, `\r\n` or `\r`.

Memory is bounded for any input: a document of more than `MAX_DOCUMENT_BYTES` without a blank line
is split into several documents, a line of more than `MAX_LINE_CHARS` into several paragraphs. Both
are counted.
"""

from __future__ import annotations

import codecs
import collections
import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Any

from data_prep.corpus.corpus import Shard
from data_prep.corpus.web_archives import read_pages
from data_prep.settings import ReadOptions
from official.xlnet.errors import DataError
from official.xlnet.files import file_system
from official.xlnet.files.compression import open_stream
from official.xlnet.files.json_files import parse_json

Document = list[str]
Counts = collections.Counter[str]  # {event: number of occurrences}

BATCH_BYTES = 4 << 20
MAX_DOCUMENT_BYTES = 32 << 20
MAX_LINE_CHARS = 1 << 16
_RECORDS_PER_BATCH = 1024
_MAX_SEPARATOR_BYTES = 256  # A document separator can span two reads by at most this.
_SEARCH_BYTES = 1 << 16  # Read size when searching for the start of a document.
_MAX_SHOWN_CHARS = 60  # Maximum length of a line quoted in an error message.

_NEWLINE = rb"(?>\r\n|\n|\r)"
_BLANK_LINE_BYTES = 4  # Longest plain blank line: \r\n\r\n.
_BLANK_LINE = re.compile(_NEWLINE + rb"[ \t\x0b\x0c]*" + _NEWLINE)
_LINE_END = re.compile(_NEWLINE)
_SPACE = re.compile(rb"[ \t\r\n]")
_BYTE_ORDER_MARK = "\ufeff".encode()


@dataclasses.dataclass(frozen=True)
class _Reading:
    """Arguments shared by all readers; see `read_documents`."""

    shard: Shard
    options: ReadOptions
    counts: Counts
    report: Callable[[int], Any]


def read_documents(
    shard: Shard, options: ReadOptions, counts: Counts, report: Callable[[int], Any]
) -> Iterator[list[Document]]:
    """Reads the documents of a shard in batches of about `BATCH_BYTES` of text.

    Args:
      shard: the shard to read.
      options: reading options; uses `text_field` and `on_bad_utf8`.
      counts: counter that is incremented for `bytes`, `characters`, `bad_bytes`, `cut_documents`
        and `cut_lines`.
      report: progress callback; called with numbers of bytes read from disk, which sum to
        `shard.num_bytes`.

    Yields:
      Batches of documents.

    Raises:
      DataError: the text is invalid; the message names the file and line.
    """
    readers = {
        "text": _read_text,
        "wiki": _read_wiki,
        "jsonl": _read_jsonl,
        "warc": _read_warc,
        "parquet": _read_parquet,
        "tfds": _read_tfds,
    }
    for documents in readers[shard.format](_Reading(shard, options, counts, report)):
        for document in documents:
            counts["characters"] += sum(map(len, document))
            if any(len(line) > MAX_LINE_CHARS for line in document):
                document[:] = _cut_lines(document, counts)
        yield documents


def _read_text(reading: _Reading) -> Iterator[list[Document]]:
    if reading.options.document_start:
        yield from _read_from_starts(reading)
        return
    for text in _blocks(reading, _next_blank_line, _last_blank_line):
        documents: list[Document] = []
        current: Document = []
        for line in _lines(text):
            if line:
                current.append(line)
            elif current:
                documents.append(current)
                current = []
        if current:
            documents.append(current)
        yield documents


def _read_from_starts(reading: _Reading) -> Iterator[list[Document]]:
    """Reads plain text whose documents begin with a line of a certain form."""
    in_bytes, in_text = reading.options.document_starts()

    def find_next(data: bytes, position: int) -> int:
        match = in_bytes.search(data, position + 1)
        return match.start() if match else 0

    def find_last(data: bytes, position: int) -> int:
        return max((match.start() for match in in_bytes.finditer(data, position)), default=0)

    for text in _blocks(reading, find_next, find_last):
        parts = in_text.split(text.replace("\r\n", "\n").replace("\r", "\n"))
        yield [document for part in parts if (document := _paragraphs(part))]


def _read_wiki(reading: _Reading) -> Iterator[list[Document]]:
    """Reads the output of WikiExtractor: `<doc id=… title=…>`, text, `</doc>`."""
    for text in _blocks(reading, _next_wiki_start, _last_wiki_start):
        documents: list[Document] = []
        for line in _lines(text):
            if line.startswith("<doc ") or (line and not documents):
                documents.append([])
            if line and line != "</doc>" and not line.startswith("<doc "):
                documents[-1].append(line)
        yield documents


def _read_jsonl(reading: _Reading) -> Iterator[list[Document]]:
    path, field = reading.shard.path, reading.options.text_field
    for text in _blocks(reading, _next_line_end, _last_line_end):
        documents: list[Document] = []
        for line in text.split("\n"):
            if not line.strip():
                continue
            try:
                record = parse_json(line, path)
            except DataError as error:
                raise DataError(
                    f"{error}; expected a JSON object on every line, got {_shown(line)}"
                ) from None
            value = record.get(field) if isinstance(record, dict) else None
            if not isinstance(value, str):
                raise DataError(
                    f"{path}: expected an object with text in the field {field!r} on every line, "
                    f"got {_shown(line)}; --text_field names another field"
                )
            documents.append(_paragraphs(value))
        yield documents


def _read_warc(reading: _Reading) -> Iterator[list[Document]]:
    """Reads the pages of a web archive; those without text are empty documents."""
    shard, counts = reading.shard, reading.counts
    documents: list[Document] = []
    size = reported = 0
    with open_stream(shard.path) as (stream, file):
        for page in read_pages(stream, shard.path):
            counts["cut_documents"] += page.is_cut
            text = page.text if isinstance(page.text, str) else _decode(page.text, reading)
            num_bytes = len(text.encode("utf-8", "replace"))
            counts["bytes"] += num_bytes
            documents.append(_paragraphs(text))
            size += num_bytes
            if size >= BATCH_BYTES:
                yield documents
                documents, size = [], 0
                reading.report(file.tell() - reported)
                reported = file.tell()
    yield documents
    reading.report(shard.num_bytes - reported)


def _read_parquet(reading: _Reading) -> Iterator[list[Document]]:
    import pyarrow
    import pyarrow.parquet as pq

    shard, field = reading.shard, reading.options.text_field
    try:
        file = pq.ParquetFile(file_system.open(shard.path, "rb"))
        if field not in file.schema_arrow.names:
            raise DataError(
                f"{shard.path}: expected a column {field!r}, got "
                f"{', '.join(file.schema_arrow.names)}; --text_field names another column"
            )
        groups = list(range(shard.start, shard.stop))
        for batch in file.iter_batches(_RECORDS_PER_BATCH, row_groups=groups, columns=[field]):
            yield _records(reading, batch.column(0).to_pylist())
    except pyarrow.ArrowException as error:
        raise DataError(f"{shard.path}: expected a complete Parquet file: {error}") from None
    reading.report(shard.num_bytes)


def _read_tfds(reading: _Reading) -> Iterator[list[Document]]:
    import tensorflow_datasets as tfds

    shard, field = reading.shard, reading.options.text_field
    name, split = shard.path.rsplit(":", 1)
    builder = tfds.builder(name)
    if field not in builder.info.features:
        raise DataError(
            f"tfds:{name}: expected a feature {field!r}, got "
            f"{', '.join(builder.info.features)}; --text_field names another feature"
        )
    dataset = builder.as_dataset(split=f"{split}[{shard.start}:{shard.stop}]", shuffle_files=False)
    for batch in tfds.as_numpy(dataset.batch(_RECORDS_PER_BATCH)):
        yield _records(reading, batch[field].tolist())
    reading.report(shard.num_bytes)


def _records(reading: _Reading, values: list[str | bytes | None]) -> list[Document]:
    """Documents of a batch of records; a missing text is an empty document."""
    documents = []
    for value in values:
        if isinstance(value, bytes):
            value = _decode(value, reading)
        elif not isinstance(value, str | None):
            raise DataError(f"{reading.shard.path}: expected text, got {type(value).__name__}")
        documents.append(_paragraphs(value or ""))
        reading.counts["bytes"] += len((value or "").encode("utf-8", "replace"))
    return documents


def _decode(data: bytes, reading: _Reading) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        if reading.options.on_bad_utf8 == "error":
            where = reading.shard.path + _place_of_bad_utf8(reading.shard)
            raise DataError(
                f"{where}: expected UTF-8, got the byte 0x{data[error.start]:02x} "
                f"({error.reason}); --on_bad_utf8=replace reads such bytes as U+FFFD"
            ) from None
        text = data.decode(errors="replace")
        already_present = data.count("\ufffd".encode())
        reading.counts["bad_bytes"] += text.count("\ufffd") - already_present
        return text


def _place_of_bad_utf8(shard: Shard) -> str:
    """`, line N` of the first invalid character in a file of lines; empty for other formats."""
    if shard.format in ("parquet", "tfds", "warc"):
        return ""
    decoder = codecs.getincrementaldecoder("utf-8")()
    num_lines = 0
    with open_stream(shard.path) as (stream, _):
        while data := stream.read(BATCH_BYTES):
            try:
                decoder.decode(data)
            except UnicodeDecodeError as error:
                return f", line {num_lines + error.object[: error.start].count(10) + 1}"
            num_lines += data.count(b"\n")
    return f", line {num_lines + 1}"


def _shown(line: str) -> str:
    return repr(line if len(line) <= _MAX_SHOWN_CHARS else line[: _MAX_SHOWN_CHARS - 3] + "...")


def _paragraphs(text: str) -> Document:
    return [line for line in _lines(text) if line]


def _lines(text: str) -> list[str]:
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return [line.strip() for line in text.split("\n")]


def _cut_lines(document: Document, counts: Counts) -> Iterable[str]:
    for line in document:
        while len(line) > MAX_LINE_CHARS:
            space = line.rfind(" ", 1, MAX_LINE_CHARS)
            cut = space if space > 0 else MAX_LINE_CHARS
            counts["cut_lines"] += 1
            yield line[:cut]
            line = line[cut:].lstrip()
        if line:
            yield line


# Blocks of text that end at document boundaries.

Find = Callable[[bytes, int], int]


def _blocks(reading: _Reading, find_next: Find, find_last: Find) -> Iterator[str]:
    """Yields the text of the documents that start in a shard, in blocks of complete documents.

    Args:
      reading: a byte range of an uncompressed file, or a compressed file.
      find_next: returns the offset of the first document that starts after a position, or 0.
      find_last: returns the offset of the last document that starts after a position, or 0.
    """
    shard, counts = reading.shard, reading.counts
    with open_stream(shard.path) as (stream, file):
        remaining = None
        if shard.stop >= 0:
            start, _ = _document_start(stream, shard.start, find_next)
            stop, is_forced = _document_start(stream, shard.stop, find_next)
            counts["cut_documents"] += is_forced
            stream.seek(start)
            remaining = max(0, stop - start)
        pending, reported = b"", 0
        while True:
            wanted = BATCH_BYTES if remaining is None else min(BATCH_BYTES, remaining)
            data = stream.read(wanted) if wanted else b""
            if not data:
                break
            if remaining is not None:
                remaining -= len(data)
            if shard.start == 0 and not reported and data.startswith(_BYTE_ORDER_MARK):
                data = data.removeprefix(_BYTE_ORDER_MARK)
                counts["bytes"] += len(_BYTE_ORDER_MARK)
            searched = max(0, len(pending) - _MAX_SEPARATOR_BYTES)
            pending += data
            end = find_last(pending, searched)
            if not end and len(pending) >= MAX_DOCUMENT_BYTES:
                end = _last_break(pending)
                counts["cut_documents"] += 1
            if end:
                counts["bytes"] += end
                yield _decode(pending[:end], reading)
                pending = pending[end:]
            position = min(shard.num_bytes, file.tell() - shard.start)
            if position > reported:
                reading.report(position - reported)
                reported = position
        if pending:
            counts["bytes"] += len(pending)
            yield _decode(pending, reading)
        reading.report(shard.num_bytes - reported)


def _document_start(file: IO[bytes], offset: int, find_next: Find) -> tuple[int, bool]:
    """Returns the first document start at or after an offset, and whether it is a forced split.

    The end of a shard is the start of the next one, so shards cover the file without overlap.
    """
    if offset == 0:
        return 0, False
    begin = max(0, offset - _BLANK_LINE_BYTES)  # A document can start at the offset itself.
    file.seek(begin)
    window = b""
    while len(window) < MAX_DOCUMENT_BYTES:
        data = file.read(_SEARCH_BYTES)
        if not data:
            return begin + len(window), False
        position = max(0, len(window) - _MAX_SEPARATOR_BYTES)
        window += data
        while position := find_next(window, position):
            if begin + position >= offset:
                return begin + position, False
    return offset + _first_break(window[offset - begin :]), True


def _next_blank_line(data: bytes, position: int) -> int:
    match = _BLANK_LINE.search(data, position)
    return match.end() if match else 0


def _last_blank_line(data: bytes, position: int) -> int:
    for mark in (b"\n\n", b"\r\n\r\n"):
        if (at := data.rfind(mark, position)) >= 0:
            return at + len(mark)
    return max((match.end() for match in _BLANK_LINE.finditer(data, position)), default=0)


def _next_line_end(data: bytes, position: int) -> int:
    return data.find(b"\n", position) + 1


def _last_line_end(data: bytes, position: int) -> int:
    return data.rfind(b"\n", position) + 1


def _next_wiki_start(data: bytes, position: int) -> int:
    return data.find(b"\n<doc ", position) + 1


def _last_wiki_start(data: bytes, position: int) -> int:
    return data.rfind(b"\n<doc ", position) + 1


def _first_break(data: bytes) -> int:
    """Offset after the first line end, else the first space, else of the first whole character."""
    match = _LINE_END.search(data) or _SPACE.search(data)
    if match:
        return match.end()
    return next((i for i, byte in enumerate(data[:4]) if byte & 0xC0 != 0x80), 0)


def _last_break(data: bytes) -> int:
    """Offset after the last line end, else the last space, else of the last character."""
    tail = len(data) - BATCH_BYTES
    for pattern in (_LINE_END, _SPACE):
        if ends := [match.end() for match in pattern.finditer(data, tail)]:
            return ends[-1]
    return next((len(data) - i for i in range(1, 5) if data[-i] & 0xC0 != 0x80), len(data))
