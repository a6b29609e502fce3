"""Readers of texts with labels: tables, and folders with one file per text, such as IMDB.

The label is `task.label_column`, the texts are `task.text_columns`. Without the latter, all other
columns are texts, except ids and row numbers, which are known by their names: the last word is
id, idx, index, guid or uuid (`pair_ID`, `PassengerId`), or there is no name (the index of pandas).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from data_prep.tasks.rows import Row, WrongRowError, listed, number, text, texts, usable
from data_prep.tasks.table_files import needed_columns, read_rows
from official.xlnet.data.examples import Label, TextExample
from official.xlnet.data.reading import Reading, register_reader
from official.xlnet.errors import DataError
from official.xlnet.files.json_files import mended
from official.xlnet.files.schema import shown
from official.xlnet.files.text import open_text
from official.xlnet.tasks.labels import are_flags

_LABEL_SEPARATOR = ","  # Separates the classes of a multi-label row.
# A list of quoted classes or of numbers, as Python and pandas write one into a table.
_LIST = re.compile(r"\s*\[(\s*|\s*(['\"]).*\2\s*|[\d.,\s]+)\]\s*", re.DOTALL)
_ID_COLUMNS = ("id", "guid", "uuid", "idx", "index")  # The first of them is the id of a row.
_ID_WORDS = {*_ID_COLUMNS, "ids"}
_UNNAMED = re.compile(r"\s*|Unnamed: \d+(_level_\d+)?")  # As pandas reads its own index.
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[^\W\d_]+")
_NO_CLASS = ("unsup",)  # Unlabelled folders, which are skipped.


@register_reader("classification")
@register_reader("multi_label")
@register_reader("regression")
def read_texts(reading: Reading) -> Iterator[TextExample]:
    """Reads the examples of a classification, multi-label or regression table.

    Args:
      reading: the file and reading options. Empty `settings.text_columns` are set by the first
        labelled row, and what each column is read as is said in one line.

    Yields:
      One example per row.

    Raises:
      DataError: a column is missing, or a row is invalid in strict mode.
    """
    text_columns: tuple[str, ...] = ()
    label_column, kind = reading.settings.label_column, reading.settings.name
    id_column: str | None = None

    def example_of(row: Row, number: int) -> TextExample:
        nonlocal text_columns, id_column
        if not text_columns:
            text_columns = text_columns_of(reading, row)
            id_column = _id_column(row, (*text_columns, label_column))
        row_id = row.get(id_column) if id_column else None
        return TextExample(
            id=str(number) if row_id in (None, "") else text(row, id_column or ""),
            texts=tuple(text(row, column) for column in text_columns),
            label=read_label(row, label_column, kind) if reading.with_labels else None,
        )

    return usable(reading, read_rows(reading), example_of)


@register_reader("classification", folder=True)
def read_folder(reading: Reading) -> Iterator[TextExample]:
    """Reads the files of all class folders, sorted by name.

    Args:
      reading: the folder and reading options.

    Yields:
      One example per file.

    Raises:
      DataError: there is no class folder, or a file is invalid in strict mode.
    """
    found = [
        entry.name
        for entry in os.scandir(reading.path)
        if entry.is_dir() and entry.name not in _NO_CLASS and not entry.name.startswith(".")
    ]
    if not found:
        raise DataError(f"{reading.path}: expected one folder per class, got none")
    for label in sorted(found):
        folder = os.path.join(reading.path, label)
        for name in sorted(os.listdir(folder)):
            if name.startswith(".") or not name.lower().endswith(".txt"):
                reading.counts["other_files"] += 1
                continue
            path = os.path.join(folder, name)
            try:
                with open_text(path) as file:
                    content = file.read().replace("<br />", " ")
            except DataError as error:
                reading.reject("bad_utf8", str(error))
                continue
            name = f"{label}/{os.path.splitext(name)[0]}"
            yield TextExample(mended(name), (content,), mended(label))


def read_label(row: Row, column: str, kind: str) -> Label:
    """Reads the label of a row.

    Args:
      row: the row.
      column: the label column.
      kind: the task type.

    Returns:
      A number for `regression`, a tuple of class names for `multi_label` (from a comma-separated
      string or a list), else a class name.

    Raises:
      WrongRowError: there is no label, the label of a regression row is not a number, or classes
        are a list as text or 0 or 1 for each class.

    Example:
      >>> read_label({"label": "news, sports"}, "label", "multi_label")
      ('news', 'sports')
    """
    if kind == "multi_label":
        is_list = isinstance(row.get(column), list)
        if not is_list and _LIST.fullmatch(text(row, column)):
            raise WrongRowError(
                f"expected classes separated by commas in {column!r}, or a list in JSON lines, got "
                f"the list as a text: {shown(row[column])}"
            )
        parts = texts(row, column) if is_list else text(row, column).split(_LABEL_SEPARATOR)
        names = tuple(part.strip() for part in parts if part.strip())
        if are_flags(names):
            raise WrongRowError(
                f"expected the names of classes in {column!r}, got 0 or 1 for each class: "
                f"{shown(row[column])}"
            )
        return names
    if row.get(column) is None or not str(row[column]).strip():
        raise WrongRowError(f"expected a label in {column!r}, got none", "missing_labels")
    return number(row, column) if kind == "regression" else text(row, column)


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


def _id_column(row: Row, others: tuple[str, ...]) -> str | None:
    """The column with the ids of the rows; None if there is none."""
    by_name = {column.lower(): column for column in reversed(row) if column not in others}
    return next((by_name[name] for name in _ID_COLUMNS if name in by_name), None)
