"""Roles of the columns of a table, by their names: texts, label, id, group, or not read.

The settings name the columns of texts and the label. Where they do not, the label is the only
column with a usual name of labels, and all others are texts, except ids, row numbers and what
usually describes a row rather than being its text (`source`, `date`, `url`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from data_prep.tasks.rows import listed
from data_prep.tasks.table_files import needed_columns
from official.xlnet.configs.task import TaskConfig
from official.xlnet.data.reading import Reading
from official.xlnet.errors import DataError, require_data

ID_COLUMNS = ("id", "guid", "uuid", "idx", "index")  # The first of them is the id of a row.
_LABELS = ("label", "labels", "class", "target", "category", "sentiment", "gold_label")
_ID_WORDS = {*ID_COLUMNS, "ids"}
_ABOUT_A_ROW = {
    *("source", "split", "fold", "url", "link", "date", "time", "timestamp", "author", "user"),
    *("username", "lang", "language", "annotator", "filename", "group"),
}
_UNNAMED = re.compile(r"\s*|Unnamed: \d+(_level_\d+)?")  # As pandas reads its own index.
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[^\W\d_]+")


class Columns(NamedTuple):
    """The columns that are read.

    Attributes:
      texts: the texts, in their order.
      label: the label.
      id: the ids of the rows; None for their numbers.
    """

    texts: tuple[str, ...]
    label: str
    id: str | None


def columns_of(reading: Reading, names: Mapping[str, Any]) -> Columns:
    """Decides which columns of a table are read, and says so where some are not, or none is named.

    Args:
      reading: the source and reading options; `settings.text_columns` and `settings.label_column`
        are set to the columns found if the table is labelled and they are not set.
      names: all columns, in their order, each with a value: lists and objects are not texts.

    Raises:
      DataError: a needed column is missing, or it cannot be told which one is meant.
    """
    settings = reading.settings
    label = _label_column(reading, names) if reading.with_labels else settings.label_column
    if reading.with_labels:
        settings.label_column = label
    for column in sorted(needed_columns(reading) - set(names)):
        key = "text_columns" if column in settings.text_columns else "label_column"
        raise DataError(
            f"{reading.path}: expected a column {column!r}, got {listed(names)}; set task.{key} to "
            "use another column"
        )
    is_given = bool(settings.text_columns)
    texts = settings.text_columns or _text_columns(reading, names, label)
    if reading.with_labels or reading.rows is None:
        labels = f", labels from {label}" if reading.with_labels else ""
        read = {*texts, label} if reading.with_labels else {*texts}
        others = [name for name in names if name not in read]
        others = [name if name.strip() else "a column without a name" for name in others]
        not_read = f"; not read as text: {listed(others)}" if others else ""
        if not_read or not is_given:
            reading.say(f"texts are read from {listed(texts)}{labels}{not_read}")
    by_name = {column.lower(): column for column in reversed(list(names))}
    found = (by_name[name] for name in ID_COLUMNS if name in by_name)
    return Columns(texts, label, next((c for c in found if c not in (*texts, label)), None))


def _label_column(reading: Reading, names: Iterable[str]) -> str:
    """The column of labels: the one in the settings, or the only one with a usual name."""
    label = reading.settings.label_column
    if label in names or label != TaskConfig.label_column:
        return label
    for known in (_LABELS[:1], _LABELS):
        found = [name for name in names if name.lower() in known]
        require_data(
            len(found) <= 1,
            reading.path,
            "one column of labels",
            f"{listed(found)}; set task.label_column to one of them",
        )
        if found and found[0] not in reading.settings.text_columns:
            return found[0]
    return label


def _text_columns(reading: Reading, names: Mapping[str, Any], label: str) -> tuple[str, ...]:
    """All columns except the label, ids, row numbers and what describes a row."""
    found = [
        column
        for column, value in names.items()
        if column not in (label, reading.settings.group_column)
        and not (_UNNAMED.fullmatch(column) or is_id(column) or isinstance(value, list | dict))
    ]
    found = [column for column in found if column.lower() not in _ABOUT_A_ROW] or found
    require_data(bool(found), reading.path, "a column of text", listed(names))
    if reading.with_labels:
        reading.settings.text_columns = tuple(found)
    return tuple(found)


def is_id(column: str) -> bool:
    """Whether a column holds ids, by its name: the last word is one of `id`, `idx`, `index`, ….

    Example:
      >>> [is_id(name) for name in ("pair_ID", "PassengerId", "uuid", "idea", "grid", "text")]
      [True, True, True, False, False, False]
    """
    words = _WORD.findall(column)
    return bool(words) and words[-1].lower() in _ID_WORDS
