"""The columns of a table that are texts: those that are named, or all but the label and ids.

Ids and row numbers are known by their names.
"""

from __future__ import annotations

import re

from data_prep.tasks.rows import Row, listed
from data_prep.tasks.table_files import needed_columns
from official.xlnet.data.reading import Reading
from official.xlnet.errors import DataError

ID_COLUMNS = ("id", "guid", "uuid", "idx", "index")  # The first of them is the id of a row.
_ID_WORDS = {*ID_COLUMNS, "ids"}
_UNNAMED = re.compile(r"\s*|Unnamed: \d+(_level_\d+)?")  # As pandas reads its own index.
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[^\W\d_]+")


def text_columns_of(reading: Reading, row: Row) -> tuple[str, ...]:
    """Returns the names of the text columns of a table.

    Args:
      reading: the file and reading options; `settings.text_columns` takes precedence, and is set
        if it is empty and the table is labelled.
      row: the first row.

    Returns:
      The configured columns, or all columns except the label, ids and row numbers.

    Raises:
      DataError: a needed column is missing, or there is no text column.
    """
    settings = reading.settings
    names = listed(row)
    for column in sorted(needed_columns(reading) - row.keys()):
        key = "text_columns" if column in settings.text_columns else "label_column"
        raise DataError(
            f"{reading.path}: expected a column {column!r}, got {names}; set task.{key} to use "
            "another column"
        )
    if settings.text_columns:
        return settings.text_columns
    label = settings.label_column
    unnamed = [column for column in row if _UNNAMED.fullmatch(column)]
    ids = [c for c in row if c not in unnamed and c != label and is_id(c)]
    found = tuple(c for c in row if c not in (label, *ids, *unnamed))
    if not found:
        raise DataError(f"{reading.path}: expected a column of text, got {names}")
    if reading.with_labels:
        settings.text_columns = found
        others = [*ids, *(["a column without a name"] if unnamed else [])]
        not_read = f"; not read as text: {listed(others)}" if others else ""
        reading.say(f"texts are read from {listed(found)}, labels from {label}{not_read}")
    return found


def is_id(column: str) -> bool:
    """Whether a column holds ids, by its name: the last word is one of `id`, `idx`, `index`, ….

    Example:
      >>> [is_id(name) for name in ("pair_ID", "PassengerId", "uuid", "idea", "grid", "text")]
      [True, True, True, False, False, False]
    """
    words = _WORD.findall(column)
    return bool(words) and words[-1].lower() in _ID_WORDS
