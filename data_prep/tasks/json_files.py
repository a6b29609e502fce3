"""Rows of JSON lines, or of a JSON array of objects."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from data_prep.tasks.row_formats import register_row_format
from data_prep.tasks.rows import Row
from official.xlnet.data.reading import Reading
from official.xlnet.errors import DataError, require_data
from official.xlnet.files.json_files import parse_json
from official.xlnet.files.schema import conform, shown
from official.xlnet.files.text import open_text


@register_row_format(endings=(".jsonl", ".ndjson"), is_always_table=True)
def json_lines_rows(reading: Reading) -> Iterator[Row]:
    """Rows of a file that has an object on each line."""
    return json_rows(reading)


@register_row_format(endings=(".json",))
def json_rows(reading: Reading) -> Iterator[Row]:
    """Rows of a file that is an array of objects, or has an object on each line."""
    with open_text(reading.path, newline="") as file:
        first = file.readline()
        if first.lstrip().startswith("["):
            tree = parse_json(first + file.read(), reading.path)
            for row_number, row in enumerate(conform(tree, list[Any], reading.path), start=1):
                if isinstance(row, dict):
                    yield row
                    continue
                where = f"{reading.path}, row {row_number}: expected an object, got {shown(row)}"
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
