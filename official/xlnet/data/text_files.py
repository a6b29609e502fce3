"""Answers to rows, chunk by chunk: from standard input as it comes, and JSON lines to write.

A killed call leaves the answers that it has to the next one. A wrong row of standard input gets an
error in place of an answer, and the next rows are answered.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import hashlib
import itertools
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import IO, Any, TypeVar

from official.xlnet.errors import DataError
from official.xlnet.files.arguments import STANDARD
from official.xlnet.files.atomic import lock, raise_with_name, remove_abandoned
from official.xlnet.files.json_files import json_text, parse_json
from official.xlnet.files.schema import conform
from official.xlnet.files.text import BYTE_ORDER_MARK
from official.xlnet.runtime.progress import Progress, elapsed_time, minutes_and_seconds

_T = TypeVar("_T")
_PIPE_BYTES = 1 << 16
ERROR = "error"  # Column of what is wrong in a row of standard input.


def batched(rows: Iterable[_T], size: int) -> Iterator[list[_T]]:
    """Yields rows in lists of some size; the last one may be shorter."""
    iterator = iter(rows)
    while chunk := list(itertools.islice(iterator, size)):
        yield chunk


@dataclasses.dataclass(frozen=True)
class WrongRow:
    """A row of standard input that cannot be answered.

    Attributes:
      columns: its columns; none if it could not be read.
      error: what is wrong, with its line.
    """

    columns: Mapping[str, Any]
    error: str

    def answer(self) -> dict[str, Any]:
        """Returns the row that is written for it: its columns and `error`, as JSON."""
        return {**self.columns, ERROR: self.error}


def incoming_rows(size: int) -> Iterator[list[Any]]:
    """Yields the lines of standard input in lists: those that have come, without waiting for more.

    Args:
      size: the most rows of a list.

    Yields:
      Objects, if the first line begins with a brace; else lines. A line that is not UTF-8, or not
        JSON, is a `WrongRow`.
    """
    before, is_json = 0, False
    for lines in _incoming_lines():
        if not before:
            lines[0] = lines[0].removeprefix(BYTE_ORDER_MARK)
            is_json = lines[0].lstrip().startswith(b"{")
            row_type = "a JSON object, as the first one is" if is_json else "a text"
            Progress(sys.stderr).log_line(f"standard input: each line is read as {row_type}")
        rows: list[Any] = []
        for line_number, line in enumerate(lines, before + 1):
            try:
                rows.append(_row(line, is_json, f"standard input, line {line_number}"))
            except DataError as error:
                rows.append(WrongRow({}, str(error)))
        yield from batched(rows, size)
        before += len(rows)


def _row(line: bytes, is_json: bool, where: str) -> Any:
    try:
        text = line.removesuffix(b"\r").decode()
    except UnicodeDecodeError as error:
        raise DataError(f"{where}: expected UTF-8, got {error.reason}") from None
    return conform(parse_json(text, where), dict[str, Any], where) if is_json else text


def _incoming_lines() -> Iterator[list[bytes]]:
    parts, data = [b""], b"\n"
    while data:
        data = os.read(0, _PIPE_BYTES)
        parts.append(data)
        if b"\n" in data or not data:
            *lines, rest = b"".join(parts).split(b"\n")
            parts = [rest]
            if lines := [*lines, *filter(None, [] if data else [rest])]:
                yield lines


class Answers:
    """Answers to rows, in chunks, with progress on standard error.

    Args:
      chunks: the rows.
      answer: returns the answers to a chunk, as JSON.
      counts: counts that `answer` adds to; counts of kept answers are added, too.
      total: number of rows; 0: unknown.
      noun: name of the rows in the progress display; empty for rows of standard input, for which
        no progress is displayed, and whose errors are answers.
      more: returns what else is said in progress.

    Attributes:
      done: number of rows that have been answered.
      kept: number of those that an earlier call has answered.
      errors: number of rows that could not be answered.
    """

    def __init__(
        self,
        chunks: Iterable[Sequence[Any]],
        answer: Callable[[Any], Any],
        counts: collections.Counter[str],
        total: int = 0,
        noun: str = "",
        more: Callable[[], str] = str,
    ):
        self._chunks, self._answer, self._counts = chunks, answer, counts
        self._total, self._noun, self._more = total, noun, more
        self.done = self.kept = self.errors = 0

    @contextlib.contextmanager
    def resuming(self, path: str | None, identity: Any) -> Iterator[Iterator[tuple[Any, Any]]]:
        """Context manager that yields an iterator over the chunks and their answers.

        With an identity, answers are also appended to `.NAME.….partial` beside the output file,
        from which a call with the same identity continues while its rows, as they were read, are
        the same. The file stays after an error, and is removed when the block succeeds. Those of
        earlier calls to the same file are removed, unless a process is writing them.

        Args:
          path: the output file; None or `-` for standard output.
          identity: JSON of all that answers depend on besides the rows of their chunk and the
            number of rows before it; None: no answer is kept.

        Yields:
          The iterator. Rows of standard input that cannot be answered are lists of `WrongRow`, in
            their place, whose answers are None.

        Raises:
          DataError: another process is writing the same.
        """
        self._start = time.monotonic()
        is_seen = path in (None, STANDARD) and sys.stdout is not None and sys.stdout.isatty()
        nothing = contextlib.nullcontext()
        partial = _partial_file(str(path), identity) if identity is not None else nothing
        with partial as file, nothing if is_seen or not self._noun else elapsed_time(self._said):
            yield self._answered(_KeptAnswers(file) if file else None)

    def counted(self) -> dict[str, int]:
        """Returns `resumed_rows` and `errors` for the result of a command, where there are some."""
        counts = {"resumed_rows": self.kept, "errors": self.errors}
        return {name: count for name, count in counts.items() if count}

    def _said(self) -> str:
        new, left = self.done - self.kept, max(0, self._total - self.done)
        seconds = (time.monotonic() - self._start) / max(new, 1) * left
        time_left = f"  {minutes_and_seconds(seconds)} left" if new and left else ""
        of_total = f"/{self._total:,}" if self._total else ""
        return f"{self._noun}: {self.done:,}{of_total}{self._more()}{time_left}"

    def _answered(self, kept_answers: _KeptAnswers | None) -> Iterator[tuple[Any, Any]]:
        for chunk in self._chunks:
            for is_wrong, rows in itertools.groupby(chunk, lambda row: isinstance(row, WrongRow)):
                if is_wrong:
                    yield self._wrong([*rows])
                else:
                    yield from self._answers_to([*rows], kept_answers)

    def _answers_to(
        self, rows: list[Any], kept_answers: _KeptAnswers | None
    ) -> Iterator[tuple[Any, Any]]:
        """Rows and their answers; of standard input one by one, if one of them is wrong."""
        kept = kept_answers.to(rows) if kept_answers else None
        before = self._counts.copy()
        try:
            answer, counts = kept or (self._answer(rows), None)
        except DataError as error:
            if self._noun:
                raise
            self._counts.clear()
            self._counts.update(before)
            if len(rows) == 1:
                columns = rows[0] if isinstance(rows[0], dict) else {}
                yield self._wrong([WrongRow(columns, str(error))])
                return
            for row in rows:
                yield from self._answers_to([row], kept_answers)
            return
        if kept:
            self._counts.update(counts)
            self.kept += len(rows)
        elif kept_answers:
            kept_answers.add(rows, answer, self._counts - before)
        self.done += len(rows)
        yield rows, answer

    def _wrong(self, rows: list[WrongRow]) -> tuple[list[WrongRow], None]:
        self.errors += len(rows)
        return rows, None


class _KeptAnswers:
    """Answers in a file of an earlier call, while its rows are those of this call; and new ones.

    Args:
      file: the file, at its beginning.
    """

    def __init__(self, file: IO[bytes]):
        self._file = file
        self._size = 0  # Of the lines that are of this call.

    def to(self, rows: list[Any]) -> tuple[Any, dict[str, int]] | None:
        """Returns the answer to the next rows and its counts; None if they were others."""
        line = self._file.readline()
        if line.endswith(b"\n"):
            checksum, answer, counts = parse_json(line.decode(), "the partial file")
            if checksum == _checksum(rows):
                self._size += len(line)
                return answer, counts
        return None

    def add(self, rows: list[Any], answer: Any, counts: Mapping[str, int]) -> None:
        """Appends the answer to rows."""
        self._file.truncate(self._size)  # A line may be incomplete, or answer other rows.
        line = json_text([_checksum(rows), answer, counts]).encode() + b"\n"
        self._file.write(line)
        self._file.flush()
        self._size += len(line)


def _checksum(rows: Sequence[Any]) -> str:
    """A checksum of all values of rows, with their types and the order of their columns."""
    return hashlib.sha256(repr(rows).encode("utf-8", "backslashreplace")).hexdigest()


@contextlib.contextmanager
def _partial_file(path: str, identity: Any) -> Iterator[IO[bytes]]:
    """Opens the file of answers that calls with this identity keep; see `Answers`."""
    folder, name = os.path.split(os.path.realpath(path))
    os.makedirs(folder, exist_ok=True)
    key = hashlib.sha256(json_text(identity).encode()).hexdigest()[:16]
    partial = os.path.join(folder, f".{name}.{key}.partial")
    pattern = re.compile(rf"\.{re.escape(name)}\.[0-9a-f]{{16}}\.partial")
    try:
        with open(partial, "a+b") as file:
            if not lock(file.fileno()):
                raise DataError(f"{path}: another process is writing there; wait for it")
            remove_abandoned(folder, pattern)
            file.seek(0)
            is_done = False
            try:
                yield file
                is_done = True
            finally:
                if is_done or not os.path.getsize(partial):
                    os.unlink(partial)
    except OSError as error:
        raise_with_name(error, partial, path)
