r"""Reads the documents of a corpus, of any format.

A document is a list of paragraphs: non-empty lines, stripped of whitespace. Where the vocabulary
keeps white space, it is a list of lines with their line ends, which put together are the text as it
is; only in files of text, line ends are read as `\n`.

Memory is bounded for any input: a document of more than `MAX_DOCUMENT_BYTES` without a blank line
is split into several documents, a line of more than `MAX_LINE_CHARS` into several paragraphs. Both
are counted. Records that cannot be read or have no text are left out and counted, up to
`ReadOptions.max_lost` of all.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Any

from data_prep.corpus.formats import (
    LOST,
    NOT_TEXT,
    RECORDS_PER_BATCH,
    Counts,
    Shard,
    TextReading,
    unix,
)
from data_prep.settings import ReadOptions
from official.xlnet.configs.registry import TEXT_FORMATS
from official.xlnet.data.lost_rows import check_lost
from official.xlnet.errors import require_data
from official.xlnet.files import file_system
from official.xlnet.files.compression import open_stream

Document = list[str]
_OTHER_LINE_ENDS = "\x0c\x85\u2028\u2029"
_MANY_RECORDS = 10_000  # So many show that a whole shard cannot be read.

BATCH_BYTES = 4 << 20
MAX_DOCUMENT_BYTES = 32 << 20
MAX_LINE_CHARS = 1 << 16
_PART_BYTES = 1 << 20  # Of text that is tokenized at once: larger arrays are slow to allocate.
_MAX_SEPARATOR_BYTES = 256  # A document separator can span two reads by at most this.
_SEARCH_BYTES = 1 << 16  # Read size when searching for the start of a document.

_BLANK_LINE_BYTES = 4  # Longest plain blank line: \r\n\r\n.


def read_documents(
    shard: Shard, options: ReadOptions, counts: Counts, report: Callable[[int], Any]
) -> Iterator[list[Document]]:
    """Reads the documents of a shard in batches of about `_PART_BYTES` of text.

    Args:
      shard: the shard to read.
      options: reading options; uses `text_field`, `on_bad_utf8`, `max_lost`, `keep_whitespace`.
      counts: counter that is incremented for `bytes`, `characters`, `bad_bytes`,
        `removed_characters` (byte order marks and NUL), `other_line_ends` (form feeds, NEL, U+2028,
        U+2029: read as spaces), `cut_documents`, `cut_lines`, the reasons in `LOST`, and
        `other_records` of web archives.
      report: progress callback; called with numbers of bytes read from disk, which sum to
        `shard.num_bytes`.

    Yields:
      Batches of documents.

    Raises:
      DataError: the text is invalid, or most of many records are; the message names the file and
        line.
    """
    num_records, reading = 0, TextReading(shard, options, counts, report)
    for texts in _texts(reading):
        documents = [_lines(text, options.keep_whitespace) for text in texts]
        lost = {name: counts[name] for name in LOST}
        num_records += len(documents)
        total = num_records + sum(lost.values())
        if total >= _MANY_RECORDS and sum(lost.values()) > max(0.5, options.max_lost) * total:
            check_lost(
                shard.path, lost, total, options.max_lost, unit="records", first=counts.first_lost
            )
        for document in documents:
            lengths = [*map(len, document)]
            counts["characters"] += sum(lengths)
            if not options.keep_whitespace and max(lengths, default=0) > MAX_LINE_CHARS:
                from data_prep.corpus.faults.unbroken_text import cut_lines

                document[:] = cut_lines(document, MAX_LINE_CHARS, counts)
        yield documents
    reading.reach(shard.num_bytes)


def _texts(reading: TextReading) -> Iterator[list[str]]:
    """Texts of the documents of a shard, in batches."""
    shard = reading.shard
    text_format = TEXT_FORMATS[shard.format]
    before = text_format.before
    if before is not None:
        pattern = before(reading.options) if callable(before) else before
        for block in _blocks(reading, pattern):
            yield _records(reading, text_format.documents(block, reading))
            reading.line += block.count("\n")
        return
    no_file = contextlib.nullcontext((None, None))
    opened = _open_shard(shard) if text_format.is_file else no_file
    with opened as (stream, file):
        values = iter(text_format.documents(stream, reading))
        while batch := list(itertools.islice(values, RECORDS_PER_BATCH)):
            texts = _records(reading, batch)
            reading.counts["bytes"] += sum(len(text.encode("utf-8", "replace")) for text in texts)
            yield texts
            if file and shard.stop < 0:
                reading.reach(file.tell())


def _records(reading: TextReading, values: Iterable[Any]) -> list[str]:
    """Documents of a batch of records; missing texts and unusual line ends are counted."""
    documents = []
    for value in values:
        reading.record += 1
        if isinstance(value, bytes):
            value = _decode(value, reading)
        if isinstance(value, str):
            documents.append(value)
            continue
        require_data(value is None, reading.place, "text", type(value).__name__)
        reading.counts.lose(
            "missing_texts",
            f"{reading.place}: expected text in {reading.options.text_field!r}, got null",
        )
    whole = "\n".join(documents)  # Searched once.
    num_line_ends = sum(whole.count(end) for end in _OTHER_LINE_ENDS if end in whole)
    if num_line_ends:
        reading.counts["other_line_ends"] += num_line_ends
    is_clean = not any(mark in whole for mark in NOT_TEXT)
    return documents if is_clean else [*map(reading.without_marks, documents)]


def _decode(data: bytes, reading: TextReading) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        from data_prep.corpus.faults.bad_utf8 import decode_replaced

        return decode_replaced(data, error, reading)


def _lines(text: str, keep_whitespace: bool) -> Document:
    """The stripped lines of a text that are not empty, or all lines, with their line ends."""
    if keep_whitespace:
        return text.splitlines(keepends=True) if text.strip() else []
    return [bare for line in unix(text).split("\n") if (bare := line.strip())]


# Blocks of text that end at document boundaries.


def _blocks(reading: TextReading, before: re.Pattern[bytes]) -> Iterator[str]:
    """Yields the text of the documents that start in a shard, in blocks of complete documents.

    Args:
      reading: a byte range of an uncompressed file, or a compressed file.
      before: matches the separator before a document.
    """
    shard, counts = reading.shard, reading.counts
    with _open_shard(shard) as (stream, file):
        remaining = sys.maxsize
        if shard.stop >= 0:
            start, _ = _document_start(stream, shard.start, before)
            stop, is_forced = shard.stop, False
            if shard.entry is None or stop < shard.entry.size:
                stop, is_forced = _document_start(stream, stop, before)
            counts["cut_documents"] += is_forced
            stream.seek(start)
            reading.begin = start
            remaining = max(0, stop - start)
        pending = b""
        while data := stream.read(min(BATCH_BYTES, remaining)):
            remaining -= len(data)
            searched = max(0, len(pending) - _MAX_SEPARATOR_BYTES)
            pending += data
            end = _last_end(before, pending, searched)
            if not end and len(pending) >= MAX_DOCUMENT_BYTES:
                from data_prep.corpus.faults.unbroken_text import first_break

                tail = len(pending) - BATCH_BYTES
                end = tail + first_break(pending[tail:])
                counts["cut_documents"] += 1
            if end:
                counts["bytes"] += end
                for part in _parts(before, pending, end):
                    yield _decode(part, reading)
                pending = pending[end:]
            reading.reach(file.tell() - shard.start)
        counts["bytes"] += len(pending)
        for part in _parts(before, pending, len(pending)):
            yield _decode(part, reading)


def _parts(before: re.Pattern[bytes], data: bytes, end: int) -> Iterator[bytes]:
    """Divides whole documents, up to a position in data, into parts of about `_PART_BYTES`."""
    start = 0
    while start < end:
        match = before.search(data, start + _PART_BYTES, end)
        stop = match.end() if match else end
        yield data[start:stop]
        start = stop


@contextlib.contextmanager
def _open_shard(shard: Shard) -> Iterator[tuple[Any, IO[bytes]]]:
    """Opens the file of a shard, see `open_stream`; in a bucket, it is requested as it is read."""
    text_format = TEXT_FORMATS[shard.format]
    is_part = shard.stop >= 0  # Of a file that is not compressed.
    buffering = 0 if is_part and file_system.is_remote(shard.path) else -1
    if not is_part or text_format.before is None or shard.entry is None:
        with open_stream(shard.path, shard.entry, buffering) as streams:
            yield streams
        return
    with file_system.open_entry(shard.entry, buffering) as file:
        yield file, file


def _document_start(file: IO[bytes], offset: int, before: re.Pattern[bytes]) -> tuple[int, bool]:
    """Returns the first document start at or after an offset, and whether it is a forced split.

    The end of a shard is the start of the next one, so shards cover the file without overlap.
    """
    if offset == 0:
        return 0, False
    begin = max(0, offset - _BLANK_LINE_BYTES)  # A document can start at the offset itself.
    file.seek(begin)
    num_read, end, step = 0, b"", _SEARCH_BYTES
    while num_read < MAX_DOCUMENT_BYTES:
        data = file.read(min(step, MAX_DOCUMENT_BYTES - num_read))
        step = min(2 * step, BATCH_BYTES)
        if not data:
            return begin + num_read, False
        window, where = end + data, begin + num_read - len(end)
        for match in before.finditer(window, max(0, len(end) - _MAX_SEPARATOR_BYTES)):
            if where + match.end() >= offset:
                return where + match.end(), False
        num_read += len(data)
        end = window[-2 * _MAX_SEPARATOR_BYTES :]  # With what a separator may look back at.
    from data_prep.corpus.faults.unbroken_text import first_break

    file.seek(offset)
    return offset + first_break(file.read(begin + MAX_DOCUMENT_BYTES - offset)), True


def _last_end(pattern: re.Pattern[bytes], data: bytes, position: int) -> int:
    """Offset of the end of the last match after a position, or 0; looks near the end first."""
    for start in (max(position, len(data) - _SEARCH_BYTES), position):
        ends = [match.end() for match in pattern.finditer(data, start)]
        if ends:
            return ends[-1]
    return 0
