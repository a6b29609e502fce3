"""JSON lines, each with the text of a document; numbers and other fields are not looked at."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from data_prep.corpus.formats import TextReading, register_format
from official.xlnet.errors import require_data
from official.xlnet.files.json_files import replace_lone_surrogates

# Numbers may be of any length, and NaN stands for a missing text.
_RECORD = json.JSONDecoder(
    parse_int=lambda digits: 0, parse_float=lambda digits: 0.0, parse_constant=lambda name: None
)


def _check_start(start: bytes, path: str) -> None:
    require_data(
        not start.startswith(b"["),
        path,
        "a JSON object on every line",
        f"an array; convert it with: jq -c '.[]' {path} > NEW.jsonl",
    )


@register_format(
    "jsonl",
    endings=(".jsonl", ".json", ".ndjson"),
    check_start=_check_start,
    before=re.compile(rb"\n"),
)
def json_lines(source: str, reading: TextReading) -> Iterator[str]:
    """A line, which is a JSON object; the text is in the field `--text_field`."""
    field = reading.options.text_field
    for line_number, line in enumerate(source.removesuffix("\n").split("\n"), reading.line + 1):
        if not line.strip():
            continue
        try:
            record = _RECORD.decode(line.strip("\ufeff \t\r"))
        except (ValueError, RecursionError) as error:
            reading.lose("malformed_records", line_number, line, f"a JSON object ({error})")
            continue
        value = record.get(field) if isinstance(record, dict) else record
        if isinstance(record, dict) and isinstance(value, str):
            yield replace_lone_surrogates(value)
        else:
            reason = "missing_texts" if value is None else "malformed_records"
            expected = f"text in the field {field!r} (--text_field names another)"
            reading.lose(reason, line_number, line, expected)
