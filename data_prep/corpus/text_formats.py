r"""Our formats of text files: plain text, JSON lines, WikiExtractor's, FASTA, WET, Parquet, TFDS.

Line ends are `\n`, `\r\n` or `\r`. Of a record, only the text is looked at, not numbers and other
fields.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from data_prep.corpus import web_archives
from data_prep.corpus.formats import TEXT_FORMATS, TextReading, register_format
from official.xlnet.errors import DataError, require_data, require_extra
from official.xlnet.files import file_system
from official.xlnet.files.compression import ending, open_stream
from official.xlnet.files.json_files import mended

TFDS_PREFIX = "tfds:"
NEWLINE = rb"(?>\r\n|\n|\r)"
RECORDS_PER_BATCH = 1024
_EXAMPLES_PER_SHARD = 20_000
DETECTION_BYTES = 1 << 12  # Read to detect the format of a file.
# Numbers may be of any length, and NaN stands for a missing text.
_RECORD = json.JSONDecoder(
    parse_int=lambda digits: 0, parse_float=lambda digits: 0.0, parse_constant=lambda name: None
)


_BLANK_LINE = re.compile(NEWLINE + rb"[ \t\x0b\x0c]*" + NEWLINE)


@register_format(
    "text",
    before=lambda options: options.document_starts()[0] if options.document_start else _BLANK_LINE,
)
def plain_text(source: str, reading: TextReading) -> Iterator[str]:
    """A block separated by blank lines; each line is a paragraph or a sentence."""
    text = unix(reading.without_marks(source))
    if reading.options.document_start:
        _, start = reading.options.document_starts()
        yield from filter(str.strip, start.split(text))
        return
    parts = re.split(r"\n(?:[^\S\n]*\n)+", f"\n{text}\n")
    yield from filter(None, (part.strip("\n") for part in parts))


@register_format("jsonl", endings=(".jsonl", ".json", ".ndjson"), before=re.compile(rb"\n"))
def json_lines(source: str, reading: TextReading) -> Iterator[str]:
    """A line, which is a JSON object; the text is in the field `--text_field`."""
    field = reading.options.text_field
    for number, line in enumerate(source.removesuffix("\n").split("\n"), reading.line + 1):
        if not line.strip():
            continue
        try:
            record = _RECORD.decode(line.strip("\ufeff \t\r"))
        except (ValueError, RecursionError) as error:
            reading.lose("malformed_records", number, line, f"a JSON object ({error})")
            continue
        value = record.get(field) if isinstance(record, dict) else record
        if isinstance(record, dict) and isinstance(value, str):
            yield mended(value)
        else:
            reason = "missing_texts" if value is None else "malformed_records"
            expected = f"text in the field {field!r} (--text_field names another)"
            reading.lose(reason, number, line, expected)


@register_format("wiki", mark=b"<doc id=", before=re.compile(rb"\n(?=<doc )"))
def wiki_extractor(source: str, reading: TextReading) -> Iterator[str]:
    """The text between `<doc …>` and `</doc>`, as WikiExtractor writes it."""
    documents: list[list[str]] = []
    for line in unix(reading.without_marks(source)).split("\n"):
        bare = line.strip()
        if bare.startswith("<doc ") or (bare and not documents):
            documents.append([])
        if documents and bare != "</doc>" and not bare.startswith("<doc "):
            documents[-1].append(line)
    yield from map("\n".join, documents)


def fasta_records(lines: Iterable[str]) -> Iterator[tuple[int, str, str]]:
    """Yields line number, header and sequence of each record of FASTA.

    A sequence has spaces if there are some within its lines. Lines before the first header are a
    record without one, and a record may have no sequence.

    Example:
      >>> list(fasta_records([">a kinase", "MK", "TA ", ">b"]))
      [(1, 'a kinase', 'MKTA'), (4, 'b', '')]
    """
    start, header, parts = 1, "", list[str]()
    for number, line in enumerate(itertools.chain(lines, [">"]), start=1):
        if not line.startswith(">"):
            parts.append(line.strip())
            continue
        if number > 1:
            yield start, header, "".join(parts)
        start, header, parts = number, line[1:].strip(), []


def _has_sequences(head: bytes) -> bool:
    """Whether the lines after headers have no spaces, as quotes of mail and Markdown have."""
    lines = [line.strip() for line in head.splitlines() if not line.startswith(b">")]
    return any(lines) and not any(b" " in line for line in lines)


@register_format(
    "fasta",
    endings=(".fasta", ".fa", ".faa", ".fna"),
    mark=b">",
    is_marked=_has_sequences,
    before=re.compile(rb"[\r\n](?=>)"),
)
def fasta(source: str, reading: TextReading) -> Iterator[str]:
    """A sequence, whose lines are put together; headers (`>`) are not text."""
    lines = unix(reading.without_marks(source)).split("\n")
    for number, _, sequence in fasta_records(lines):
        if " " in sequence:
            expected = "letters without spaces after it (--format=text reads the file as text)"
            reading.lose("malformed_records", reading.line + number, sequence, expected)
        elif sequence:
            yield sequence


def is_fasta(path: str) -> bool:
    """Whether a file is FASTA, by its name or its first bytes."""
    form = TEXT_FORMATS["fasta"]
    if ending(path) in form.endings:
        return True
    with open_stream(path) as (stream, _):
        return form.begins(stream.read(DETECTION_BYTES))


@register_format("warc", mark=web_archives.MARK)
def web_archive(source: Any, reading: TextReading) -> Iterator[bytes]:
    """A page of Common Crawl's WET files: a `conversion` record."""
    for page in web_archives.read_pages(source, reading.shard.path):
        if page is None:
            reading.counts["other_records"] += 1
            continue
        reading.counts["cut_documents"] += len(page) >= web_archives.MAX_RECORD_BYTES
        yield page


def _row_groups(path: str, part_size: int) -> list[tuple[str, int, int, int]]:
    """Groups of row groups."""
    require_extra("pyarrow", "parquet", path)
    import pyarrow
    import pyarrow.parquet as pq

    try:
        with file_system.open(path, "rb") as file:
            metadata = pq.read_metadata(file)
    except pyarrow.ArrowInvalid as error:
        raise DataError(f"{path}: expected a Parquet file: {error}") from None
    parts, start, num_bytes = [], 0, 0
    for group in range(metadata.num_row_groups):
        num_bytes += metadata.row_group(group).total_byte_size
        if num_bytes >= part_size or group == metadata.num_row_groups - 1:
            parts.append((path, start, group + 1, num_bytes))
            start, num_bytes = group + 1, 0
    return parts


@register_format("parquet", endings=(".parquet",), parts=_row_groups)
def parquet(source: Any, reading: TextReading) -> Iterator[Any]:
    """A row; the text is in the column `--text_field` (extra `parquet`)."""
    import pyarrow
    import pyarrow.parquet as pq

    shard, field = reading.shard, reading.options.text_field
    try:
        file = pq.ParquetFile(source)
        require_data(
            field in file.schema_arrow.names,
            shard.path,
            f"a column {field!r}",
            f"{', '.join(file.schema_arrow.names)}; --text_field names another column",
        )
        groups = list(range(shard.start, shard.stop))
        for batch in file.iter_batches(RECORDS_PER_BATCH, row_groups=groups, columns=[field]):
            yield from batch.column(0).to_pylist()
    except pyarrow.ArrowException as error:
        raise DataError(f"{shard.path}: expected a complete Parquet file: {error}") from None


def _example_ranges(path: str, part_size: int) -> list[tuple[str, int, int, int]]:
    """Ranges of examples of a split, or of a slice of one."""
    require_extra("tensorflow_datasets", "tfds", TFDS_PREFIX)
    import tensorflow_datasets as tfds

    dataset, _, split = path.removeprefix(TFDS_PREFIX).partition(":")
    split = split or "train"
    splits: Any = {}
    try:
        splits = tfds.builder(dataset).info.splits
        slices = tfds.core.ReadInstruction.from_spec(split).to_absolute(splits)
    except (ValueError, AssertionError, NotImplementedError) as error:
        raise DataError(
            f"{path}: expected a split of {dataset} that is on disk, one of "
            f"{', '.join(splits) or '(none: download it with tfds build)'}, or a slice of one, "
            f"such as train[:80%]; got {split!r} ({str(error).partition(chr(10))[0]})"
        ) from None
    parts = []
    for part in slices:
        info = splits[part.splitname]
        per_example = info.num_bytes // max(1, info.num_examples)
        end = info.num_examples if part.to is None else part.to
        for start in range(part.from_ or 0, end, _EXAMPLES_PER_SHARD):
            stop = min(start + _EXAMPLES_PER_SHARD, end)
            name = f"{dataset}:{part.splitname}"
            parts.append((name, start, stop, per_example * (stop - start)))
    return parts


@register_format("tfds", parts=_example_ranges, is_file=False)
def tensorflow_datasets(source: None, reading: TextReading) -> Iterator[bytes]:
    """An example of a TFDS data set on disk, of a split or a slice such as `train[:80%]`.

    The text is in the feature `--text_field`.
    """
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
    split = f"{split}[{shard.start}:{shard.stop}]"
    dataset = builder.as_dataset(split=split, shuffle_files=False)
    for batch in tfds.as_numpy(dataset.batch(RECORDS_PER_BATCH)):
        yield from batch[field].tolist()


def unix(text: str) -> str:
    """The text with the line ends of Unix."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


# Values of `--format`, to which extensions add names.
FORMATS = ("auto", *(name for name, form in TEXT_FORMATS.items() if form.is_file))
