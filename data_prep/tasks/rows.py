"""Rows to examples: values as the type they have to be; rows of another form are rejected."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from official.xlnet.configs.task import TaskConfig
from official.xlnet.data.examples import Example
from official.xlnet.data.reading import Reading
from official.xlnet.errors import DataError, require_data
from official.xlnet.files.schema import shown

Row = dict[str, Any]
Made = TypeVar("Made")
# Types of values that are written as text.
TEXTS = str | int | float | datetime.date | datetime.time | datetime.timedelta
_TRUTH = {"true": "1", "false": "0"}
MAX_NUMBER = 1e18  # Its square is finite in float32.


class WrongRowError(Exception):
    """A row that cannot be used.

    Args:
      expected: what was expected and what was found.
      reason: key of the count of such rows.
    """

    def __init__(self, expected: str, reason: str = "malformed_rows"):
        super().__init__(expected)
        self.reason = reason


def usable(
    reading: Reading, rows: Iterable[Row], example_of: Callable[[Row, int], Made]
) -> Iterator[Made]:
    """Yields an example for every row; one that is wrong is counted, or an error if strict.

    Args:
      reading: says whether it is an error.
      rows: the rows.
      example_of: makes an example of a row and its number, from 1; raises `WrongRowError`.
    """
    for row_number, row in enumerate(rows, start=reading.num_before + 1):
        if isinstance(row, Example):
            if reading.with_labels and not row.is_labelled:
                where = f"{reading.path}, row {row_number}"
                message = f"{where}: expected a label, got {shown(row)} without one"
                reading.reject("missing_labels", message)
            else:
                yield row
            continue
        try:
            yield example_of(row, row_number)
        except WrongRowError as error:
            reading.reject(error.reason, f"{reading.path}, row {row_number}: {error}")


def text(row: Row, column: str) -> str:
    """A text; finite numbers of JSON are texts, too."""
    return _text(row.get(column), column)


def renamed(reading: Reading, row: Row, texts: Sequence[str], label: str) -> Row:
    """Returns a row whose columns that settings name have the names that its task knows.

    Args:
      reading: says whether labels are read; its settings have `text_columns` and `label_column`.
      row: the row.
      texts: names of the texts.
      label: name of the label.

    Raises:
      WrongRowError: the row lacks a column that a setting names.

    Example:
      >>> reading = Reading("a.jsonl", TaskConfig(label_column="gold"))
      >>> renamed(reading, {"words": ["a"], "gold": ["X"]}, ["words"], "tags")
      {'words': ['a'], 'gold': ['X'], 'tags': ['X']}
    """
    settings = reading.settings
    columns = dict(zip(texts, settings.text_columns, strict=False))
    if reading.with_labels and settings.label_column != TaskConfig.label_column:
        columns[label] = settings.label_column
    for column in columns.values():
        if column not in row:
            raise WrongRowError(f"expected a column {column!r}, got {listed(row)}")
    return row | {name: row[column] for name, column in columns.items()}


def group_of(row: Row, settings: TaskConfig) -> str:
    """The value in `task.group_column`, whose rows are held out together; empty without one."""
    value = row.get(settings.group_column) if settings.group_column else None
    return "" if value is None else str(value)


def class_name(value: Any, column: str) -> str:
    """The name of a class, which may be a number or truth value; 1.0 is 1, as 1 is.

    Raises:
      WrongRowError: it is missing or none of these.

    Example:
      >>> class_name("good", "label"), class_name(1.0, "label"), class_name(1.5, "label")
      ('good', '1', '1.5')
    """
    if value is None or (isinstance(value, str) and not value.strip()):
        raise WrongRowError(f"expected a label in {column!r}, got none", "missing_labels")
    return _name(value, column, "a label, the name of a class,")


def row_id(row: Row, column: str | None, row_number: int) -> str:
    """The id of a row: 7.0 is 7; `row N` if it is missing; without a column of ids, its number.

    Example:
      >>> row_id({"id": 7.0}, "id", 3), row_id({"id": None}, "id", 3), row_id({}, "id", 3)
      ('7', 'row 3', '3')
    """
    if column is None or column not in row:
        return str(row_number)
    return f"row {row_number}" if row[column] in (None, "") else _name(row[column], column, "an id")


def texts(row: Row, column: str) -> list[str]:
    """A list of texts."""
    value = row.get(column)
    if not isinstance(value, list):
        raise WrongRowError(f"expected a list in {column!r}, got {shown(value)}")
    return [_text(item, column) for item in value]


def number(
    row: Row, column: str, most: float = MAX_NUMBER, *, takes_truth_values: bool = False
) -> float:
    """A finite number from `-most` to `most`, which may be written as text.

    Args:
      row: the row.
      column: its column.
      most: the largest absolute value.
      takes_truth_values: whether true and false are 1 and 0; they are no numbers otherwise.

    Raises:
      WrongRowError: it is another value, NaN, infinite or too large.

    Example:
      >>> number({"score": "-1.5"}, "score"), number({"score": 2}, "score")
      (-1.5, 2.0)
    """
    given = row.get(column)
    is_number_or_text = isinstance(given, int | float | str)
    name = str(given).strip().lower() if is_number_or_text else ""
    if takes_truth_values:
        name = _TRUTH.get(name, name)
    try:
        # Python also reads `1_000` and the digits of other scripts.
        value = float(name) if name.isascii() and "_" not in name else math.nan
    except (ValueError, OverflowError):
        value = math.nan
    if not abs(value) <= most:
        expected = f"a number of at most {most:g} in {column!r}"
        got = shown(given) if column in row else f"the columns {listed(row)}"
        raise WrongRowError(f"expected {expected}, got {got}")
    return value


def numbers(rows: Iterable[Row], column: str, path: str, noun: str = "row") -> list[float]:
    """The number of each row; see `number`.

    Args:
      rows: the rows.
      column: their column.
      path: their file, for errors.
      noun: name of a row, for errors.

    Raises:
      DataError: a row has none.
    """
    values = []
    for row_number, row in enumerate(rows, start=1):
        try:
            values.append(number(row, column))
        except WrongRowError as error:
            raise DataError(f"{path}, {noun} {row_number}: {error}") from None
    return values


def listed(columns: Iterable[str]) -> str:
    r"""Names of columns for a message; those with spaces at an end or line ends are quoted.

    Example:
      >>> listed(["text", " label", "a b"])
      "text, ' label', a b"
    """
    names = []
    for name in columns:
        is_plain = name == name.strip() and name.isprintable()
        names.append(name if is_plain else shown(name))
    return ", ".join(names)


def distinct(columns: Iterable[Any], where: str) -> list[str]:
    """Returns the names of columns; raises `DataError` if there is a name twice."""
    names = list(map(str, columns))
    for name in names:
        require_data(names.count(name) <= 1, where, "each column once", f"{name!r} again")
    return names


def needed_columns(reading: Reading) -> set[str]:
    """Returns the columns that a table must have, as far as the settings name them."""
    settings = reading.settings
    if not settings.has_text_columns:
        return set()
    return {*settings.text_columns, *([settings.label_column] if reading.with_labels else [])}


def _name(value: Any, column: str, expected: str) -> str:
    is_whole = isinstance(value, float) and value.is_integer()
    return _text(int(value) if is_whole else value, column, expected)


def _text(value: Any, column: str, expected: str = "text") -> str:
    is_infinite = isinstance(value, float) and not math.isfinite(value)
    if is_infinite or not isinstance(value, TEXTS):
        raise WrongRowError(f"expected {expected} in {column!r}, got {shown(value)}")
    return str(value)
