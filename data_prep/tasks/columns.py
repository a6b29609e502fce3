"""What each column of a table is: a text, the label, an id, or not read. Nothing is guessed.

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
    *("source", "split", "fold", "url", "link", "date", "time", "timestamp", "author", "user"),
    *("username", "lang", "language", "annotator", "filename", "group"),
}
_INDEX = re.compile(r"\s*|Unnamed: \d+(_level_\d+)?|__index_level_\d+__")  # As pandas writes it.
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[^\W\d_]+")
_NO_TEXT = {  # {kind: its values in a file}
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
    settings, values = reading.settings, dict[str, list[Any]]()
    for row in rows:
        for name, value in row.items():
            values.setdefault(name, []).extend([] if value in (None, "") else [value])
    label, why = settings.label_column, "task.label_column"
    if label == TaskConfig.label_column:
        usual = [n for n in values if n.lower() in _LABELS and n not in settings.text_columns]
        usual = [n for n in usual if n.lower() == label] or usual
        why = "by name"
        if reading.with_labels and usual and label not in values:
            label = only(reading, usual, values, "label_column")
    if reading.with_labels:
        settings.label_column = label
    for column in sorted(needed_columns(reading) - set(values)):
        key = "text_columns" if column in settings.text_columns else "label_column"
        raise DataError(
            f"{reading.path}: expected a column {column!r}, got {with_examples(values, values)}; "
            f"set task.{key} to use another column"
        )
    texts, is_set = settings.text_columns, bool(settings.text_columns)
    by_text = reading.with_labels  # A text of the first row alone says nothing of the others.
    reasons = {
        name: _why_not(name, [v for v in found if by_text or not isinstance(v, str)])
        or ("empty" if by_text and not found else "")
        for name, found in values.items()
    }
    if not is_set:
        others = [name for name in values if name not in (label, settings.group_column)]
        usable = [name for name in others if reasons[name] not in ("pandas index", "id", "lists")]
        texts = tuple([name for name in usable if not reasons[name]] or usable)
        require_data(bool(texts), reading.path, "a column of text", with_examples(values, values))
        if reading.with_labels:
            settings.text_columns = texts
    if reading.with_labels or reading.rows is None:
        labels = f", labels from {listed([label])} ({why})" if reading.with_labels else ""
        used = {*texts, label} if reading.with_labels else {*texts}
        not_read = {n: "" if is_set else reasons[n] for n in values if n not in used}
        not_text = [
            (listed([name]) if name.strip() else "a column without a name")
            + (f" ({reason})" if reason else "")
            for name, reason in (not_read | reading.unread).items()
        ]
        unread = f"; not read as text: {', '.join(not_text)}" if not_text else ""
        if unread or not is_set:
            chosen = " (task.text_columns)" if is_set else ""
            reading.say(f"texts are read from {listed(texts)}{chosen}{labels}{unread}")
    by_name = {column.lower(): column for column in reversed(list(values))}
    ids = (by_name[name] for name in ID_COLUMNS if name in by_name)
    return Columns(texts, label, next((c for c in ids if c not in (*texts, label)), None))


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
    examples = {name: values[name] for name in names}
    first = {n: v[:1] if isinstance(v, list) else [v] for n, v in examples.items()}
    return ", ".join(
        f"{listed([name])}{f' ({shown(x[0], 30)})' if x else ''}" for name, x in first.items()
    )


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
    kinds = (kind for kind, form in _NO_TEXT.items() if all(form.fullmatch(str(v)) for v in values))
    return next(kinds, "") if values else ""


def is_id(column: str) -> bool:
    """Whether a column holds ids, by its name: the last word is one of `id`, `idx`, `index`, ….

    Example:
      >>> [is_id(name) for name in ("pair_ID", "PassengerId", "uuid", "idea", "grid", "text")]
      [True, True, True, False, False, False]
    """
    words = _WORD.findall(column)
    return bool(words) and words[-1].lower() in _ID_WORDS
