"""Rows of files: TSV, CSV, JSON lines, a JSON array of objects, Parquet, Arrow, Feather, FASTA.

TSV lines are split at tabs without quoting, as required for GLUE; CSV is quoted, and strictly so.
Extensions are read without case; for compressed files, the extension before `.gz` counts.
"""

from __future__ import annotations

import contextlib
import csv
import functools
import itertools
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from data_prep.corpus.text_formats import fasta_records, is_fasta
from data_prep.tasks.rows import Row, distinct, listed
from official.xlnet.data.reading import Reading
from official.xlnet.errors import DataError, require_data, require_extra
from official.xlnet.files import file_system
from official.xlnet.files.compression import ending
from official.xlnet.files.json_files import parse_json
from official.xlnet.files.schema import conform, shown
from official.xlnet.files.text import open_text

ARROW = (".parquet", ".arrow", ".feather", ".ipc")
_ARROW_FILE = b"ARROW1"  # First bytes of Arrow's files, unlike its streams.
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}


def read_file(reading: Reading) -> Iterator[Row]:
    """Reads the rows of a file with a table.

    Args:
      reading: the file and reading options.

    Yields:
      Each row as {column: value}.

    Raises:
      DataError: the file cannot be read, or a row is invalid in strict mode.
    """
    read = TABLE_FORMATS.get(ending(reading.path))
    if read is None:
        read = _sequences if is_fasta(reading.path) else TABLE_FORMATS[".tsv"]
    yield from read(reading)


def _sequences(reading: Reading) -> Iterator[Row]:
    """Rows of FASTA: the id is the first word of the header, as in Biopython."""
    texts = reading.settings.text_columns
    column = texts[0] if len(texts) == 1 else "sequence" if reading.settings.name else "text"
    with open_text(reading.path) as file:
        for number, header, sequence in fasta_records(file):
            where, expected = f"{reading.path}, line {number}", "letters without spaces after it"
            require_data(" " not in sequence, where, expected, shown(sequence))
            yield {"id": (header.split() or [f"line {number}"])[0], column: sequence}


def _delimited(own: str, reading: Reading) -> Iterator[Row]:
    """Rows of a file of CSV or TSV, whose own separator is a comma or a tab."""
    path = reading.path
    with open_text(path, newline="" if own == "," else "\n") as file:  # Texts of TSV may have \r.
        first, *others = _AFTER_RETURN.split(file.readline())
        require_data(
            not first.lstrip().startswith(('{"', "[{")),
            path,
            f"a table, as {ending(path) or 'no extension'} says",
            "JSON; rename the file to .jsonl",
        )
        separator = _separator(reading, first, own)
        is_quoted = own == "," or separator != own
        lines = itertools.chain([first, *others], file)
        records = _quoted(reading, lines, separator) if is_quoted else _unquoted(reading, lines)
        yield from _named(reading, records)


def needed_columns(reading: Reading) -> set[str]:
    """Returns the columns that a table must have, as far as the settings name them."""
    settings = reading.settings
    if not settings.has_text_columns:
        return set()
    return {*settings.text_columns, *([settings.label_column] if reading.with_labels else [])}


def _separator(reading: Reading, first: str, own: str) -> str:
    """The separator of the format, or the one with which alone the first line is as expected."""
    found: dict[str, list[str]] = {}
    for separator in _SEPARATORS:
        with contextlib.suppress(csv.Error):
            found[separator] = next(csv.reader([first], delimiter=separator, strict=True), [])
    if len(first.split(own) if own == "\t" else found.get(own, [])) > 1:
        return own
    given = reading.settings.columns
    for other, names in found.items():
        has_names = len(names) > 1 and needed_columns(reading) <= set(names)
        if other != own and (len(names) == len(given) if given else has_names):
            reading.say(
                f"columns are separated by {_SEPARATORS[other]}, as the first line says, not by "
                f"{_SEPARATORS[own]}"
            )
            return other
    return own


_AFTER_RETURN = re.compile(r"(?<=\r)(?=[^\n])")  # In a header: all lines end so, as on old Macs.
# A field with quotes in quotes, as a writer of CSV makes it.
_QUOTED = re.compile(r'"(?:[^"]*"")+[^"]*"')

# (line of the file where it begins, number of lines, fields)
Record = tuple[int, int, list[str]]


def _quoted(reading: Reading, lines: Iterable[str], separator: str) -> Iterator[Record]:
    csv.field_size_limit(sys.maxsize)
    reader, start = csv.reader(lines, delimiter=separator, strict=True), 1
    try:
        for row in reader:
            yield start, reader.line_num - start + 1, row
            start = reader.line_num + 1
    except csv.Error as error:
        raise DataError(
            f"{reading.path}, line {start}: expected a row whose quotes are closed, got a quote "
            f"that opens there and, up to line {reader.line_num}, is not closed at the end of a "
            f"field ({error}); quotes within quotes are written twice"
        ) from None


def _unquoted(reading: Reading, lines: Iterable[str]) -> Iterator[Record]:
    num_quoted = 0
    for number, line in enumerate(lines, start=1):
        row = line.removesuffix("\n").removesuffix("\r").split("\t")
        num_quoted += any(map(_QUOTED.fullmatch, row))
        yield number, 1, [] if row == [""] else row
    if num_quoted and reading.with_labels:
        reading.say(
            f"{num_quoted} lines have fields in quotes, which TSV reads as part of the text; "
            "with the extension .csv, quotes are read, and tabs are separators, too"
        )


def _named(reading: Reading, records: Iterator[Record]) -> Iterator[Row]:
    path = reading.path
    first: Record = next(records, (1, 1, []))
    require_data(bool(first[2]), path, "a header with column names", "an empty file")
    columns, has_header = _columns(reading, first[2])
    distinct(filter(None, columns), path)
    for line, num_lines, fields in records if has_header else itertools.chain([first], records):
        if not fields:
            require_data(not reading.strict, f"{path}, line {line}", "a row", "an empty line")
            reading.counts["blank_lines"] += 1
        elif len(fields) == len(columns):
            yield dict(zip(columns, fields, strict=True))
        else:
            message = (
                f"{path}, line {line}: expected {len(columns)} columns "
                f"({listed(columns)}), got {len(fields)}"
            )
            if num_lines > 1:
                raise DataError(
                    f"{message} in a row of {num_lines} lines; a quote in line {line} or after it "
                    "is probably never closed"
                )
            reading.reject("malformed_rows", message)


def _columns(reading: Reading, fields: list[str]) -> tuple[list[str], bool]:
    """The names of the columns, and whether they are in the first row, which is then a header.

    They are `task.columns` otherwise; in a file to predict that has no other column than texts,
    those.
    """
    given, texts = list(reading.settings.columns), list(reading.settings.text_columns)
    if not given:
        return fields, True
    if fields == given or (texts and needed_columns(reading) <= set(fields)):
        reading.say(f"the first line is read as a header: {listed(fields)}")
        return fields, True
    if reading.with_labels or len(fields) == len(given) or not texts:
        return given, False
    require_data(
        len(fields) == len(texts),
        reading.path,
        f"a header with {listed(texts)}, or {len(texts)} columns ({listed(texts)}), or "
        f"{len(given)} columns as in training ({listed(given)})",
        f"{len(fields)} columns",
    )
    reading.say(f"columns are read as {listed(texts)}")
    return texts, False


def _json_rows(reading: Reading) -> Iterator[Row]:
    with open_text(reading.path, newline="") as file:
        first = file.readline()
        if first.lstrip().startswith("["):
            tree = parse_json(first + file.read(), reading.path)
            for number, row in enumerate(conform(tree, list[Any], reading.path), start=1):
                if isinstance(row, dict):
                    yield row
                    continue
                where = f"{reading.path}, row {number}: expected an object, got {shown(row)}"
                reading.reject("malformed_rows", where)
            return
        require_data(
            not first.lstrip().startswith("{") or "}" in first,
            reading.path,
            "JSON lines, with one object on each line, or an array of objects",
            "one object over several lines",
        )
        for place, line in enumerate(itertools.chain([first], file), start=1):
            where = f"{reading.path}, line {place}"
            if not line.strip():
                require_data(not reading.strict, where, "a row", "an empty line")
                reading.counts["blank_lines"] += 1
                continue
            try:
                yield conform(parse_json(line, where), dict[str, Any], where)
            except DataError as error:
                reading.reject("malformed_rows", str(error))


def _arrow_rows(reading: Reading) -> Iterator[Row]:
    require_extra("pyarrow", "parquet", reading.path)
    from pyarrow import ArrowException, ipc, parquet

    batches: Iterable[Any]
    try:
        with file_system.open(reading.path, "rb") as file:
            if ending(reading.path) == ".parquet":
                parts = parquet.ParquetFile(file)
                schema, batches = parts.schema_arrow, parts.iter_batches()
            elif file.read(len(_ARROW_FILE)) == _ARROW_FILE:
                parts = ipc.open_file(file)
                schema, batches = (
                    parts.schema,
                    map(parts.get_batch, range(parts.num_record_batches)),
                )
            else:  # As HF's `datasets` write them.
                file.seek(0)
                stream = ipc.open_stream(file)
                schema, batches = stream.schema, stream
            yield from arrow_rows(reading, schema, batches)
    except ArrowException as error:
        kind = "Parquet" if ending(reading.path) == ".parquet" else "Arrow"
        message = f"{reading.path}: expected {kind} that pyarrow reads, got {error}"
        raise DataError(message) from None


def arrow_rows(reading: Reading, schema: Any, batches: Iterable[Any]) -> Iterator[Row]:
    """Rows of Arrow; notes the index and the names of classes that the metadata has.

    Args:
      reading: gets `unread` of pandas' metadata, and `classes` of those of Hugging Face.
      schema: the Arrow schema.
      batches: record batches.
    """
    distinct(schema.names, reading.path)
    pandas, hf = (
        json.loads((schema.metadata or {}).get(key, "{}")) for key in (b"pandas", b"huggingface")
    )
    index = [name for name in pandas.get("index_columns", ()) if isinstance(name, str)]
    reading.unread |= dict.fromkeys(index, "pandas index")
    reading.classes |= class_names(hf.get("info", {}).get("features", {}))
    for batch in batches:
        yield from batch.to_pylist()


def class_names(features: Mapping[str, Any]) -> dict[str, Sequence[str]]:
    """Names of classes by column.

    Args:
      features: features of HF `datasets` or TFDS, as objects or JSON.

    Example:
      >>> class_names({"tags": {"_type": "List", "feature": {"names": ["O", "B-PER"]}}, "text": {}})
      {'tags': ['O', 'B-PER']}
    """
    names: dict[str, Sequence[str]] = {}
    for column, feature in features.items():
        while isinstance(feature, list) or _part(feature, "feature"):
            feature = feature[0] if isinstance(feature, list) else _part(feature, "feature")
        if isinstance(found := _part(feature, "names"), list):
            names[column] = found
    return names


def _part(feature: Any, name: str) -> Any:
    return feature.get(name) if isinstance(feature, dict) else getattr(feature, name, None)


# {ending of a file: its reader}; without any of these, files are read as TSV.
TABLE_FORMATS: dict[str, Callable[[Reading], Iterator[Row]]] = {
    ".tsv": functools.partial(_delimited, "\t"),
    ".csv": functools.partial(_delimited, ","),
    **dict.fromkeys((".jsonl", ".json", ".ndjson"), _json_rows),
    **dict.fromkeys(ARROW, _arrow_rows),
}
