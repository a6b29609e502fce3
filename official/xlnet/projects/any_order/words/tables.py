"""Tables with rows of words, or of pairs of words, and the other columns of their texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from data_prep.tasks.text_rows import Row
from official.xlnet.data.json_lines import write_json_lines
from official.xlnet.data.result_files import TABLES, check_columns, check_ending, write_rows
from official.xlnet.jobs.file_scoring import ScoringCall

_TEXT = ("text", "context")


def other_columns(row: Row) -> dict[str, Any]:
    """Returns the columns of a row besides its texts."""
    return {name: value for name, value in row.items() if name not in _TEXT}


def chunks_for_table(call: ScoringCall, format: str | None) -> tuple[Iterator[list[Row]], int]:
    """Returns the rows of the input, see `ScoringCall.chunks`; checks that its columns fit.

    Args:
      call: the arguments of the call, whose output is a table, or JSON lines on standard output.
      format: the format of the input file; None: by its name.

    Raises:
      DataError: the output has no other columns of this name or type.
    """
    if call.output:
        check_ending(call.output, TABLES)
    chunks, num_rows = call.chunks(format=format)
    if call.output and num_rows:
        chunks = iter(held := [*chunks])
        check_columns(call.output, [other_columns(row) for chunk in held for row in chunk])
    return chunks, num_rows


def write_table(output: str | None, rows: Iterable[dict[str, Any]]) -> None:
    """Writes rows to a table, when all are there; or each as it comes to standard output.

    Args:
      output: the table; None: JSON lines on standard output.
      rows: the rows.
    """
    if output:
        write_rows(output, list(rows))
    else:
        write_json_lines(None, rows)
