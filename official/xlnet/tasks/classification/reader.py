"""Readers of texts with labels: tables, and folders with one file per text, such as IMDB.

The label is `task.label_column`, the texts are `task.text_columns`. Without the latter, all other
columns are texts, except ids and row numbers, which are known by their names: the last word is
id, idx, index, guid or uuid (`pair_ID`, `PassengerId`), or there is no name (the index of pandas).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from data_prep.tasks.rows import Row, WrongRowError, number, text, texts, usable
from data_prep.tasks.table_files import read_rows
from data_prep.tasks.text_columns import ID_COLUMNS, text_columns_of
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


def _id_column(row: Row, others: tuple[str, ...]) -> str | None:
    """The column with the ids of the rows; None if there is none."""
    by_name = {column.lower(): column for column in reversed(row) if column not in others}
    return next((by_name[name] for name in ID_COLUMNS if name in by_name), None)
