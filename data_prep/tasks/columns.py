"""Roles of the columns of a table: a text, the label, an id, or not read. Nothing is guessed.

1. The source decides what is an index of pandas, and the names of classes (`table.py`).
2. The usual names of a task decide, exactly: `label`, `ner_tags`, `idx`, `url`, …
3. The settings choose: `task.text_columns`, `task.label_column`.

All other columns are texts, except numbers, truth values, dates, durations, lists and empty ones.
If several columns are left where one is needed, an error lists them, each with an example, and the
setting that chooses.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from data_prep.tasks.rows import TEXTS, Row, listed, needed_columns
from official.xlnet.configs.task import TaskConfig
from official.xlnet.data.reading import Reading
from official.xlnet.errors import DataError, require_data
from official.xlnet.files.schema import shown

ID_COLUMNS = ("id", "guid", "uuid", "idx", "index")  # The first of them is the id of a row.
_LABELS = ("label", "labels", "class", "target", "category", "sentiment", "gold_label")
_ID_WORDS = {*ID_COLUMNS, "ids"}
_ABOUT_A_ROW = {
    "source",
    "split",
    "fold",
    "url",
    "link",
    "date",
    "time",
    "timestamp",
    "author",
    "user",
    "username",
    "lang",
    "language",
    "annotator",
    "filename",
    "group",
}
_INDEX = re.compile(r"\s*|Unnamed: \d+(_level_\d+)?|__index_level_\d+__")  # As pandas writes it.
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[^\W\d_]+")
_NO_TEXT = {  # {type: its values in a file}
    "numbers": re.compile(
        r"\s*([-+]?(\d+\.?\d*|\.\d+|inf)(e[-+]?\d+)?|nan|true|false)\s*", re.IGNORECASE
    ),
    "dates": re.compile(  # And durations.
        r"(?=-?\d)(\d{4}-\d\d-\d\d|-?\d+ days?,?)?([ T]?\+?\d\d?:\d\d(:[\d.]+)?)?"
        r"(Z|[-+][\d:]+)?|-?P(?=T?\d)[\dDTHMS.]+"
    ),
}


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


def columns_of(reading: Reading, rows: Iterable[Row]) -> Columns:
    """Decides which columns of a table are read, and logs each column with the reason.

    Args:
      reading: the source and reading options; `settings.text_columns` and `settings.label_column`
        are set to the chosen columns if the table is labelled and they are not set.
      rows: all rows, or the first one if the settings name the columns.

    Raises:
      DataError: a needed column is missing, or it cannot be told which one is meant.
    """
    settings = reading.settings
    values: dict[str, list[Any]] = {}  # Without missing values.
    for row in rows:
        for name, value in row.items():
            column = values.setdefault(name, [])
            if value not in (None, ""):
                column.append(value)
    label, label_reason = _label_column(reading, values)
    if reading.with_labels:
        settings.label_column = label
    for missing in sorted(needed_columns(reading) - set(values)):
        key = "text_columns" if missing in settings.text_columns else "label_column"
        raise DataError(
            f"{reading.path}: expected a column {missing!r}, got {with_examples(values, values)}; "
            f"set task.{key} to use another column"
        )
    reasons = _reasons_not_to_read(values, all_rows=reading.with_labels)
    texts, is_set = settings.text_columns, bool(settings.text_columns)
    if not is_set:
        texts = _text_columns(reading, values, reasons, label)
        if reading.with_labels:
            settings.text_columns = texts
    if reading.with_labels or reading.rows is None:
        used = {*texts, label} if reading.with_labels else {*texts}
        unread = {name: reasons[name] for name in values if name not in used}
        if is_set:  # The settings are the reason.
            unread = dict.fromkeys(unread, "")
        labels = f", labels from {listed([label])} ({label_reason})" if reading.with_labels else ""
        _log_choice(reading, texts, is_set, labels, unread | reading.unread)
    return Columns(texts, label, _id_column(values, (*texts, label)))


def _label_column(reading: Reading, values: Mapping[str, list[Any]]) -> tuple[str, str]:
    """The column of the label, and the reason for it."""
    settings = reading.settings
    label = settings.label_column
    if label != TaskConfig.label_column:
        return label, "task.label_column"
    usual = [
        name for name in values if name.lower() in _LABELS and name not in settings.text_columns
    ]
    exact = [name for name in usual if name.lower() == label]
    candidates = exact or usual
    if reading.with_labels and candidates and label not in values:
        label = only(reading, candidates, values, "label_column")
    return label, "by name"


def _reasons_not_to_read(values: Mapping[str, list[Any]], all_rows: bool) -> dict[str, str]:
    """Why each column is not a text; "" if it is."""
    reasons = {}
    for name, column in values.items():
        if all_rows:
            reasons[name] = _why_not(name, column)
            if not reasons[name] and not column:
                reasons[name] = "empty"
        else:  # A text of the first row alone says nothing of the others.
            reasons[name] = _why_not(name, [x for x in column if not isinstance(x, str)])
    return reasons


def _text_columns(
    reading: Reading, values: Mapping[str, Any], reasons: Mapping[str, str], label: str
) -> tuple[str, ...]:
    """The columns of text, where no setting names them."""
    usable = []
    for name in values:
        has_other_role = name in (label, reading.settings.group_column)
        if not has_other_role and reasons[name] not in ("pandas index", "id", "lists"):
            usable.append(name)
    texts = [name for name in usable if not reasons[name]] or usable
    require_data(bool(texts), reading.path, "a column of text", with_examples(values, values))
    return tuple(texts)


def _log_choice(
    reading: Reading, texts: Sequence[str], is_set: bool, labels: str, unread: Mapping[str, str]
) -> None:
    """Logs which columns are read, unless all are as the settings say."""
    parts = []
    for name, reason in unread.items():
        part = listed([name]) if name.strip() else "a column without a name"
        parts.append(f"{part} ({reason})" if reason else part)
    if is_set and not parts:
        return
    chosen = " (task.text_columns)" if is_set else ""
    not_read = f"; not read as text: {', '.join(parts)}" if parts else ""
    reading.say(f"texts are read from {listed(texts)}{chosen}{labels}{not_read}")


def _id_column(names: Iterable[str], used: Sequence[str]) -> str | None:
    """The column of ids: the first of the usual names that is not used otherwise."""
    by_name: dict[str, str] = {}
    for name in names:
        by_name.setdefault(name.lower(), name)
    for id_name in ID_COLUMNS:
        if id_name in by_name and by_name[id_name] not in used:
            return by_name[id_name]
    return None


def only(reading: Reading, names: Sequence[str], row: Mapping[str, Any], setting: str) -> str:
    """Returns the only name; raises `DataError` if there are several, which shows the choice.

    Args:
      reading: the source.
      names: columns for one role.
      row: {column: its values, or one of them}.
      setting: the key of the section `task` that chooses.
    """
    if len(names) > 1:
        raise DataError(
            f"{reading.path}: expected one column for task.{setting}, got "
            f"{with_examples(names, row)}; set task.{setting} to one of them"
        )
    return names[0]


def with_examples(names: Iterable[str], values: Mapping[str, Any]) -> str:
    """Names of columns for a message, each with an example value.

    Example:
      >>> with_examples(["text", "label"], {"text": ["a film"], "label": []})
      "text ('a film'), label"
    """
    parts = []
    for name in names:
        value = values[name]
        examples = value[:1] if isinstance(value, list) else [value]
        part = listed([name])
        parts.append(f"{part} ({shown(examples[0], 30)})" if examples else part)
    return ", ".join(parts)


def _why_not(column: str, values: Sequence[Any]) -> str:
    """The reason why a column is not a text; "" if it is."""
    if _INDEX.fullmatch(column):
        return "pandas index"
    if is_id(column):
        return "id"
    for value in values[:1]:
        if not isinstance(value, TEXTS):
            return "lists" if isinstance(value, list | dict) else type(value).__name__
    if column.lower() in _ABOUT_A_ROW:
        return "by name"
    if values:
        for value_type, pattern in _NO_TEXT.items():
            if all(pattern.fullmatch(str(value)) for value in values):
                return value_type
    return ""


def is_id(column: str) -> bool:
    """Whether a column holds ids, by its name: the last word is one of `id`, `idx`, `index`, ….

    Example:
      >>> [is_id(name) for name in ("pair_ID", "PassengerId", "uuid", "idea", "grid", "text")]
      [True, True, True, False, False, False]
    """
    words = _WORD.findall(column)
    return bool(words) and words[-1].lower() in _ID_WORDS
