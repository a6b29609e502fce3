r"""Document readers: plain text, WikiExtractor output, JSON lines, web archives, Parquet and TFDS.

A document is a list of paragraphs: non-empty lines, stripped of whitespace. Where the vocabulary
keeps white space, it is a list of lines with their line ends, which put together are the text as it
is; only in files of text, line ends are read as `\n`. In plain text,
documents are separated by blank lines, or begin where `document_start` says; in the other formats,
every record is a document. Line ends
are `\n`, `\r\n` or `\r`.

Memory is bounded for any input: a document of more than `MAX_DOCUMENT_BYTES` without a blank line
is split into several documents, a line of more than `MAX_LINE_CHARS` into several paragraphs. Both
are counted. Records that cannot be read or have no text are left out and counted, up to
`ReadOptions.max_lost` of all; numbers and other fields of a record are not looked at.
"""

from __future__ import annotations

import collections
import dataclasses
import itertools
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import IO, Any

from data_prep.corpus import web_archives
from data_prep.corpus.corpus import Shard
from data_prep.settings import ReadOptions
from official.xlnet.data.reading import check_lost
from official.xlnet.errors import DataError, require_data
from official.xlnet.files import file_system
from official.xlnet.files.compression import open_stream
from official.xlnet.files.json_files import mended
from official.xlnet.files.schema import shown
from official.xlnet.files.text import conversion, first_fault

Document = list[str]
LOST = ("malformed_records", "missing_texts")
# Characters that are not text, wherever they are.
_NOT_TEXT = "\ufeff\0"
_OTHER_LINE_ENDS = "\x0c\x85\u2028\u2029"
# Of a record, texts are read only: numbers may be of any length, and NaN stands for a missing text.
_RECORD = json.JSONDecoder(
    parse_int=lambda digits: 0, parse_float=lambda digits: 0.0, parse_constant=lambda name: None
)
_MANY_RECORDS = 10_000  # So many show that a whole shard cannot be read.

BATCH_BYTES = 4 << 20
MAX_DOCUMENT_BYTES = 32 << 20
MAX_LINE_CHARS = 1 << 16
_RECORDS_PER_BATCH = 1024
_MAX_SEPARATOR_BYTES = 256  # A document separator can span two reads by at most this.
_SEARCH_BYTES = 1 << 16  # Read size when searching for the start of a document.

_NEWLINE = rb"(?>\r\n|\n|\r)"
_BLANK_LINE_BYTES = 4  # Longest plain blank line: \r\n\r\n.
_BLANK_LINE = re.compile(_NEWLINE + rb"[ \t\x0b\x0c]*" + _NEWLINE)
_LINE_END = re.compile(_NEWLINE)
_SPACE = re.compile(rb"[ \t\r\n]")
_UNIX_LINE_END = re.compile(rb"\n")
_BEFORE_WIKI_PAGE = re.compile(rb"\n(?=<doc )")


class Counts(collections.Counter[str]):
    """{event: number of occurrences}.

    Attributes:
      first_lost: error message of the first unreadable record.
    """

    first_lost: str = ""

    def lose(self, reason: str, message: str) -> None:
        """Counts a record that is left out; `reason` is one of `LOST`."""
        self[reason] += 1
        self.first_lost = self.first_lost or message


@dataclasses.dataclass
class _Reading:
    """Arguments shared by all readers; see `read_documents`.

    Attributes:
      begin: position in the file of the first record, set when it is known.
      reported: number of bytes of the shard that have been reported.
    """

    shard: Shard
    options: ReadOptions
    counts: Counts
    report: Callable[[int], Any]
    begin: int = 0
    reported: int = 0

    def reach(self, position: int) -> None:
        """Reports that the shard has been read up to a position, in bytes on disk."""
        number = min(position, self.shard.num_bytes) - self.reported
        if number > 0:
            self.report(number)
            self.reported += number


def read_documents(
    shard: Shard, options: ReadOptions, counts: Counts, report: Callable[[int], Any]
) -> Iterator[list[Document]]:
    """Reads the documents of a shard in batches of about `BATCH_BYTES` of text.

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
    readers = {
        "text": _read_text,
        "wiki": _read_wiki,
        "jsonl": _read_jsonl,
        "warc": _read_warc,
        "parquet": _read_parquet,
        "tfds": _read_tfds,
    }
    num_records, reading = 0, _Reading(shard, options, counts, report)
    for texts in readers[shard.format](reading):
        documents = [_lines(text, options.keep_whitespace) for text in texts]
        lost = {name: counts[name] for name in LOST}
        num_records += len(documents)
        total = num_records + sum(lost.values())
        if total >= _MANY_RECORDS and sum(lost.values()) > max(0.5, options.max_lost) * total:
            check_lost(
                shard.path, lost, total, options.max_lost, unit="records", first=counts.first_lost
            )
        for document in documents:
            counts["characters"] += sum(map(len, document))
            if not options.keep_whitespace and any(len(x) > MAX_LINE_CHARS for x in document):
                document[:] = _cut_lines(document, counts)
        yield documents
    reading.reach(shard.num_bytes)


def _read_text(reading: _Reading) -> Iterator[list[str]]:
    """Reads plain text: documents begin after blank lines, or with a line of a certain form."""
    has_starts = bool(reading.options.document_start)
    before, in_text = reading.options.document_starts()
    for block in _blocks(reading, before if has_starts else _BLANK_LINE):
        text = _unix(_text(block, reading.counts))
        if has_starts:
            yield [part for part in in_text.split(text) if part.strip()]
        else:
            groups = itertools.groupby(text.split("\n"), lambda line: bool(line.strip()))
            yield ["\n".join(lines) for is_text, lines in groups if is_text]


def _read_wiki(reading: _Reading) -> Iterator[list[str]]:
    """Reads the output of WikiExtractor: `<doc id=… title=…>`, text, `</doc>`."""
    for text in _blocks(reading, _BEFORE_WIKI_PAGE):
        documents: list[list[str]] = []
        for line in _unix(_text(text, reading.counts)).split("\n"):
            bare = line.strip()
            if bare.startswith("<doc ") or (bare and not documents):
                documents.append([])
            if documents and bare != "</doc>" and not bare.startswith("<doc "):
                documents[-1].append(line)
        yield ["\n".join(lines) for lines in documents]


def _read_jsonl(reading: _Reading) -> Iterator[list[str]]:
    field, number = reading.options.text_field, 0
    for text in _blocks(reading, _UNIX_LINE_END):
        documents: list[str] = []
        for line in text.removesuffix("\n").split("\n"):
            number += 1
            if not line.strip():
                continue
            try:
                record = _RECORD.decode(line.strip("\ufeff \t\r"))
            except (ValueError, RecursionError) as error:
                _lose(reading, "malformed_records", number, line, f"a JSON object ({error})")
                continue
            value = record.get(field) if isinstance(record, dict) else record
            if isinstance(record, dict) and isinstance(value, str):
                documents.append(_text(mended(value), reading.counts))
            else:
                reason = "missing_texts" if value is None else "malformed_records"
                expected = f"text in the field {field!r} (--text_field names another)"
                _lose(reading, reason, number, line, expected)
        yield documents


def _lose(reading: _Reading, reason: str, number: int, line: str, expected: str) -> None:
    """Counts a line that is left out; `number` is its number in the shard."""
    where = f"{reading.shard.path}, line {number}"
    if reading.begin:
        where += f" after byte {reading.begin}"
    reading.counts.lose(reason, f"{where}: expected {expected}, got {shown(line)}")


def _read_warc(reading: _Reading) -> Iterator[list[str]]:
    """Reads the pages of a web archive; other records are counted."""
    with open_stream(reading.shard.path) as (stream, file):
        pages = web_archives.read_pages(stream, reading.shard.path)
        while batch := list(itertools.islice(pages, _RECORDS_PER_BATCH)):
            texts = [page for page in batch if page is not None]
            reading.counts["other_records"] += len(batch) - len(texts)
            most = web_archives.MAX_RECORD_BYTES
            reading.counts["cut_documents"] += sum(len(text) >= most for text in texts)
            yield _records(reading, texts)
            reading.reach(file.tell())


def _read_parquet(reading: _Reading) -> Iterator[list[str]]:
    import pyarrow
    import pyarrow.parquet as pq

    shard, field = reading.shard, reading.options.text_field
    try:
        file = pq.ParquetFile(file_system.open(shard.path, "rb"))
        require_data(
            field in file.schema_arrow.names,
            shard.path,
            f"a column {field!r}",
            f"{', '.join(file.schema_arrow.names)}; --text_field names another column",
        )
        groups = list(range(shard.start, shard.stop))
        for batch in file.iter_batches(_RECORDS_PER_BATCH, row_groups=groups, columns=[field]):
            yield _records(reading, batch.column(0).to_pylist())
    except pyarrow.ArrowException as error:
        raise DataError(f"{shard.path}: expected a complete Parquet file: {error}") from None


def _read_tfds(reading: _Reading) -> Iterator[list[str]]:
    import tensorflow_datasets as tfds

    shard, field = reading.shard, reading.options.text_field
    name, split = shard.path.rsplit(":", 1)
    builder = tfds.builder(name)
    require_data(
        field in builder.info.features,
        f"tfds:{name}",
        f"a feature {field!r}",
        f"{', '.join(builder.info.features)}; --text_field names another feature",
    )
    dataset = builder.as_dataset(split=f"{split}[{shard.start}:{shard.stop}]", shuffle_files=False)
    for batch in tfds.as_numpy(dataset.batch(_RECORDS_PER_BATCH)):
        yield _records(reading, batch[field].tolist())


def _records(reading: _Reading, values: Sequence[str | bytes | None]) -> list[str]:
    """Documents of a batch of records; missing texts are counted."""
    documents = []
    for value in values:
        if value is None:
            field = reading.options.text_field
            reading.counts.lose(
                "missing_texts", f"{reading.shard.path}: expected text in {field!r}, got null"
            )
            continue
        if isinstance(value, bytes):
            value = _decode(value, reading)
        elif not isinstance(value, str):
            raise DataError(f"{reading.shard.path}: expected text, got {type(value).__name__}")
        documents.append(_text(value, reading.counts))
        reading.counts["bytes"] += len(value.encode("utf-8", "replace"))
    return documents


def _decode(data: bytes, reading: _Reading) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        if reading.options.on_bad_utf8 == "error":
            path, has_lines = reading.shard.path, reading.shard.format in ("text", "wiki", "jsonl")
            where = f"{path}, line {first_fault(path)[0]}" if has_lines else path
            raise DataError(
                f"{where}: expected UTF-8, got the byte 0x{data[error.start]:02x} "
                f"({error.reason}); --on_bad_utf8=replace reads such bytes as U+FFFD; if the file "
                f"is in another encoding, {conversion('WINDOWS-1252', path)}"
            ) from None
        text = data.decode(errors="replace")
        already_present = data.count("\ufffd".encode())
        reading.counts["bad_bytes"] += text.count("\ufffd") - already_present
        return text


def _text(text: str, counts: Counts) -> str:
    """The text without characters that are not text; these and unusual line ends are counted."""
    for character in _NOT_TEXT:
        if character in text:
            counts["removed_characters"] += text.count(character)
            text = text.replace(character, "")
    if number := sum(map(text.count, _OTHER_LINE_ENDS)):
        counts["other_line_ends"] += number
    return text


def _unix(text: str) -> str:
    """The text with the line ends of Unix."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _lines(text: str, keep_whitespace: bool) -> Document:
    """The stripped lines of a text that are not empty, or all lines, with their line ends."""
    if keep_whitespace:
        return text.splitlines(keepends=True) if text.strip() else []
    return [bare for line in _unix(text).split("\n") if (bare := line.strip())]


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


def _blocks(reading: _Reading, before: re.Pattern[bytes]) -> Iterator[str]:
    """Yields the text of the documents that start in a shard, in blocks of complete documents.

    Args:
      reading: a byte range of an uncompressed file, or a compressed file.
      before: matches the separator before a document.
    """
    shard, counts = reading.shard, reading.counts
    with open_stream(shard.path) as (stream, file):
        remaining = sys.maxsize
        if shard.stop >= 0:
            start, _ = _document_start(stream, shard.start, before)
            stop, is_forced = _document_start(stream, shard.stop, before)
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
                tail = len(pending) - BATCH_BYTES
                end = tail + _first_break(pending[tail:])
                counts["cut_documents"] += 1
            if end:
                counts["bytes"] += end
                yield _decode(pending[:end], reading)
                pending = pending[end:]
            reading.reach(file.tell() - shard.start)
        if pending:
            counts["bytes"] += len(pending)
            yield _decode(pending, reading)


def _document_start(file: IO[bytes], offset: int, before: re.Pattern[bytes]) -> tuple[int, bool]:
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
        for match in before.finditer(window, position):
            if begin + match.end() >= offset:
                return begin + match.end(), False
    return offset + _first_break(window[offset - begin :]), True


def _last_end(pattern: re.Pattern[bytes], data: bytes, position: int) -> int:
    """Offset of the end of the last match after a position, or 0; looks near the end first."""
    for start in (max(position, len(data) - _SEARCH_BYTES), position):
        ends = [match.end() for match in pattern.finditer(data, start)]
        if ends:
            return ends[-1]
    return 0


def _first_break(data: bytes) -> int:
    """Offset after the first line end, else the first space, else of the first whole character."""
    match = _LINE_END.search(data) or _SPACE.search(data)
    if match:
        return match.end()
    return next((i for i, byte in enumerate(data[:4]) if byte & 0xC0 != 0x80), 0)
