"""Readers of texts with labels: tables, and folders with one file per text, such as IMDB.

`data_prep.tasks.columns` says which columns are texts, the label and ids.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator

from data_prep.tasks.columns import Columns, columns_of
from data_prep.tasks.rows import (
    Row,
    WrongRowError,
    class_name,
    group_of,
    number,
    row_id,
    text,
    usable,
)
from data_prep.tasks.table import read_rows
from official.xlnet.configs.task import TaskConfig
from official.xlnet.data.examples import Label, TextExample
from official.xlnet.data.reading import Reading, register_reader
from official.xlnet.errors import ArgumentTypeError, DataError, require_data
from official.xlnet.files.json_files import replace_lone_surrogates
from official.xlnet.files.schema import shown
from official.xlnet.files.text import open_text
from official.xlnet.tasks.classification import ClassificationConfig

# A list of quoted classes or of numbers, as Python and pandas write one into a table.
_LIST = re.compile(r"\s*\[(\s*|\s*(['\"]).*\2\s*|[\d.,\s]+)\]\s*", re.DOTALL)
_FLAGS = {"0", "1", "0.0", "1.0", "False", "True"}
_NO_CLASS = ("unsup",)  # Unlabelled folders, which are skipped.


@register_reader("classification")
@register_reader("multi_label")
@register_reader("regression")
def read_texts(reading: Reading) -> Iterator[TextExample]:
    """Reads the examples of a classification, multi-label or regression table.

    Args:
      reading: the source and reading options; see `columns_of`.

    Yields:
      One example per row.

    Raises:
      DataError: a column is missing, or a row is invalid in strict mode.
    """
    settings = reading.settings
    rows: Iterable[Row] = read_rows(reading)
    if reading.with_labels and not settings.text_columns:
        rows = list(rows)  # Rows of JSON may lack a column, and numbers are not texts.
    columns: Columns | None = None
    label_types: set[type] = set()  # Types of the labels in rows of Python.
    label_sets: set[frozenset[str]] = set()  # The classes of each row of `multi_label`.

    def example_of(row: Row, row_number: int) -> TextExample:
        nonlocal columns
        if settings.needs_names:
            raise ArgumentTypeError(
                f"{reading.path}, row {row_number}: expected an example with its subtask, as "
                f"columns do not say it for {settings.name}, got a mapping"
            )
        if columns is None:
            all_rows = rows if isinstance(rows, list) else [row]
            columns = columns_of(reading, [row for row in all_rows if isinstance(row, dict)])
        value = row.get(columns.label)
        label_types.update(map(type, value if isinstance(value, list) else [value]))
        label = read_label(row, columns.label, settings) if reading.with_labels else None
        label_sets.add(frozenset(label if isinstance(label, tuple) else ()))
        return TextExample(
            id=row_id(row, columns.id, row_number),
            texts=tuple(text(row, column) for column in columns.texts),
            label=label,
            group=group_of(row, settings),
        )

    yield from usable(reading, rows, example_of)
    if reading.with_labels and settings.name == "multi_label":
        require_data(label_sets != {frozenset()}, reading.path, "classes in some rows", "none")
    if len(label_sets) == 1 and not settings.labels:  # Multi-hot over two classes, as [0, 1].
        (classes,) = label_sets
        is_multi_hot = len(classes) >= 2 and classes <= _FLAGS
        require_data(not is_multi_hot, reading.path, "names of classes", "0 or 1 for each class")
    if reading.rows is not None and reading.with_labels and settings.name != "regression":
        from official.xlnet.tasks.label_types import type_of_labels

        settings.label_type = type_of_labels(label_types - {type(None)})


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
    labels = []
    for entry in os.scandir(reading.path):
        is_hidden = entry.name.startswith(".")
        if entry.is_dir() and entry.name not in _NO_CLASS and not is_hidden:
            labels.append(entry.name)
    require_data(bool(labels), reading.path, "one folder per class", "none")
    for label in sorted(labels):
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
            yield TextExample(
                replace_lone_surrogates(name), (content,), replace_lone_surrogates(label)
            )


def read_label(row: Row, column: str, settings: TaskConfig) -> Label:
    """Reads the label of a row.

    Args:
      row: the row.
      column: the label column.
      settings: settings of the task.

    Returns:
      A number for `regression`, a tuple of class names for `multi_label` (from a list, or a string
      with `label_separator`), else a class name.

    Raises:
      WrongRowError: there is no label, the label of a regression row is not a number, or classes
        are a list as text or 0 or 1 for each class.

    Example:
      >>> read_label({"label": "news, sports"}, "label", TaskConfig.create(name="multi_label"))
      ('news', 'sports')
    """
    value = row.get(column)
    if settings.name == "multi_label":
        value = "" if value is None else value  # As an empty field of CSV is read by pandas.
        if not isinstance(value, list) and _LIST.fullmatch(str(value)):
            raise WrongRowError(
                f"expected classes separated by commas in {column!r}, or a list in JSON lines, got "
                f"the list as a text: {shown(value)}"
            )
        if isinstance(value, list):
            parts = value
        else:
            separator = settings.settings(ClassificationConfig).label_separator
            parts = [part for part in str(value).split(separator) if part.strip()]
        names = tuple(class_name(part, column).strip() for part in parts)
        if len(set(names)) < len(names) and set(names) <= _FLAGS:  # Multi-hot.
            raise WrongRowError(
                f"expected the names of classes in {column!r}, got 0 or 1 for each class: "
                f"{shown(value)}"
            )
        return names
    is_missing = value is None or not str(value).strip()
    if settings.name == "regression" and not is_missing:
        return number(row, column)
    return class_name(value, column)
