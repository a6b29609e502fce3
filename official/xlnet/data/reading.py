"""Task data readers, and limits on rows and text that do not reach the model."""

from __future__ import annotations

import collections
import dataclasses
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any

from absl import logging

from official.xlnet.configs.registry import FILE_READERS, FOLDER_READERS
from official.xlnet.configs.task import TaskConfig
from official.xlnet.errors import DataError
from official.xlnet.files.arguments import STANDARD
from official.xlnet.files.schema import Range
from official.xlnet.runtime.progress import Progress

MaxLost = Annotated[float, Range(0, 1)]  # A share of rows that are left out and counted.
MAX_LOST = 0.05
_WARNED_UNKNOWN_SHARE = 0.01
# Counts in the summary line of a verb, and their words.
_SAID = {
    "rows": "rows",
    "texts": "texts",
    "examples": "examples",
    "empty": "empty",
    "only_unknown": "of unknown tokens alone",
    "truncated": "cut",
    "tokens": "tokens",
    "unknown_tokens": "of them unknown",
}


@dataclasses.dataclass
class Reading:
    """A source of rows to read, and options for reading it.

    Attributes:
      path: path of the file or folder, or `tfds:NAME:SPLIT` for a TFDS data set on disk; with
        `rows`, what messages call these.
      settings: settings of the task.
      strict: whether an invalid row raises an error; otherwise it is counted and skipped.
      with_labels: whether labels are required.
      counts: numbers of skipped rows, by reason; updated by the reader.
      lost: the part of `counts` that could not be used: rejected rows.
      first_lost: error message of the first of them.
      rows: rows of Python to read in place of a file: a frame, columns, or a list.
      classes: names of the classes of columns of integers, as the source says.
      unread: columns that the source says are not data, each with the reason.
    """

    path: str
    settings: TaskConfig
    strict: bool = False
    with_labels: bool = True
    counts: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    lost: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    first_lost: str = ""
    rows: Any = None
    classes: dict[str, Sequence[str]] = dataclasses.field(default_factory=dict)
    unread: dict[str, str] = dataclasses.field(default_factory=dict)

    def say(self, message: str) -> None:
        """Says in one line how the file is read, where that is not given by its format."""
        Progress(sys.stderr).log_line(f"{self.path}: {message}")

    def reject(self, reason: str, message: str) -> None:
        """Handles an invalid row.

        Args:
          reason: key of `counts` to increment.
          message: the error message in strict mode.

        Raises:
          DataError: in strict mode.
        """
        if self.strict:
            raise DataError(message)
        self.counts[reason] += 1
        self.lost[reason] += 1
        self.first_lost = self.first_lost or message


Reader = Callable[[Reading], Iterator[Any]]


def register_reader(name: str, *, folder: bool = False) -> Callable[[Reader], Reader]:
    """Decorator that registers a function as the reader of a task's data.

    The function takes a `Reading` and yields examples (`official.xlnet.data.examples`, or any
    object with an `id` that the task supports). It omits labels if `reading.with_labels` is false,
    and calls `reading.reject` for invalid rows.

    Args:
      name: the `task.name` whose data it reads.
      folder: whether it reads folders instead of files; a task can have one reader of each kind.

    Returns:
      The decorator.

    Raises:
      ConfigError: the task already has a reader of this kind.

    Example:
      >>> @register_reader("stars")
      ... def read_stars(reading):
      ...     with open(reading.path, encoding="utf-8") as file:
      ...         for number, line in enumerate(file, start=1):
      ...             stars, _, text = line.strip().partition(" ")
      ...             label = stars if reading.with_labels else None
      ...             yield TextExample(str(number), (text,), label)
    """
    return (FOLDER_READERS if folder else FILE_READERS).register(name)


def check_lost(
    where: str,
    lost: Mapping[str, int],
    total: int,
    max_lost: float = MAX_LOST,
    *,
    unit: str = "rows",
    first: str = "",
) -> None:
    """Warns of lost rows; raises an error if their share is above a limit.

    Args:
      where: path of the file, for the message.
      lost: numbers of lost rows, by reason.
      total: number of all rows, with those that are lost.
      max_lost: largest share of lost rows that is not an error, from 0 to 1.
      unit: name of the counted units, e.g. `documents`.
      first: error message of the first of them.

    Raises:
      DataError: more than `max_lost` of the rows are lost.

    Example:
      >>> check_lost("train.csv", {"malformed_rows": 3}, 12)
      Traceback (most recent call last):
      DataError: train.csv: 3 of 12 rows cannot be used (malformed_rows 3); expected at most 0.05 of
        them, see --max_lost
    """
    number = sum(lost.values())
    if not number:
        return
    reasons = ", ".join(f"{reason} {count}" for reason, count in lost.items() if count)
    message = f"{where}: {number} of {total} {unit} cannot be used ({reasons})"
    first = f"; the first: {first}" if first else ""
    if number > max_lost * total:
        raise DataError(
            f"{message}; expected at most {max_lost:.3g} of them, see --max_lost{first}"
        )
    logging.warning("%s%s", message, first)


def log_counts(source: str, counts: Mapping[str, Any]) -> None:
    """Logs one line with the numbers of texts read, truncated and skipped in a file.

    Args:
      source: the file; `-` for standard input.
      counts: numbers, some of them by a name of `_SAID`.
    """
    said = [
        f"{number:,} {what.removesuffix('s') if number == 1 else what}"
        for name, what in _SAID.items()
        if (number := counts.get(name))
    ]
    Progress(sys.stderr).log_line(f"{_named(source)}: {', '.join(said)}")


def _named(source: str) -> str:
    return "standard input" if source == STANDARD else source


def check_unknown(counts: Mapping[str, int], source: str, limit: float = 1.0) -> dict[str, float]:
    """Warns if more than 1% of the tokens of a text are `<unk>`.

    Args:
      counts: `tokens` and `unknown_tokens`, as `Tokenizer.counts`.
      source: name of the text, for messages.
      limit: largest share of `<unk>` that is not an error.

    Returns:
      `unknown_tokens`, and `unknown_share`, the share of these in all tokens.

    Raises:
      DataError: the share is above the limit.

    Example:
      >>> check_unknown({"tokens": 400, "unknown_tokens": 2}, "text.txt")
      {'unknown_tokens': 2, 'unknown_share': 0.005}
    """
    tokens, unknown = counts.get("tokens", 0), counts.get("unknown_tokens", 0)
    share = unknown / max(tokens, 1)
    message = (
        f"{_named(source)}: {unknown:,} of {tokens:,} tokens ({share:.1%}) are <unk>, as the "
        "vocabulary lacks their characters"
    )
    if share > limit:
        raise DataError(
            f"{message}; expected at most {limit:.1%}: use a vocabulary of such text (and its "
            "data.lowercase and data.keep_accents), or set data.max_unknown=1"
        )
    if share > _WARNED_UNKNOWN_SHARE:
        logging.warning("%s", message)
    return {"unknown_tokens": unknown, "unknown_share": round(share, 4)}
