"""Formats of text files: how a format is recognized, divided into parts, and read.

A format is an entry of `TEXT_FORMATS`, from which everything else is derived: the choices of
`--format`, detection by name and first bytes, parts that are read in parallel, line numbers in
errors, and the table in docs/data_preparation.md. The module of a format is imported when a file
has the format: `TEXT_FILES` lists the endings and first bytes.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import os
import re
from collections.abc import Callable, Iterable
from typing import Any

from data_prep.settings import ReadOptions
from official.xlnet.configs.file_patterns import (
    matching_starts,
    pattern_of_ending,
    register_patterns,
)
from official.xlnet.configs.registry import TEXT_FILES, TEXT_FORMATS
from official.xlnet.files.compression import ending
from official.xlnet.files.schema import shown
from official.xlnet.files.urls.file_entry import FileEntry

DETECTION_BYTES = 1 << 12  # Read to detect the format of a file.
RECORDS_PER_BATCH = 1024  # Records that are read at once from a file that is not text.
TFDS_PREFIX = "tfds:"
LOST = ("malformed_records", "missing_texts")
# Python searches for its first characters, twice as fast as for an atomic group.
NEWLINE = rb"(?:\r\n?+|\n)"
# Characters that are not text, wherever they are.
NOT_TEXT = "\ufeff\0"


@dataclasses.dataclass
class TextFormat:
    """A format of text files, for `xlnet prepare` and `xlnet vocab`; see `register_format`.

    Attributes:
      name: value of `--format` that selects it.
      documents: yields the text of each document of a block or file.
      endings: endings of file names, in lower case.
      mark: first bytes of a file, after white space.
      is_marked: whether the first bytes, which begin with `mark`, are of this format; None: always.
      check_start: function (first bytes without white space, path) that raises `DataError` if they
        do not begin a file of this format; None: any file may be read in it.
      before: matches the bytes before a document, at most 256, or returns the pattern for some
        options; None: a file is read as a whole.
      parts: function (path, part size in bytes) that divides a file into (path, start, stop, number
        of bytes), see `Shard`; None: byte ranges of a text that is not compressed, or one part.
      is_file: whether the text is in files.
    """

    name: str
    documents: Callable[[Any, TextReading], Iterable[str | bytes | None]]
    endings: tuple[str, ...] = ()
    mark: bytes = b""
    is_marked: Callable[[bytes], bool] | None = None
    check_start: Callable[[bytes, str], None] | None = None
    before: re.Pattern[bytes] | Callable[[ReadOptions], re.Pattern[bytes]] | None = None
    parts: Callable[[str, int], list[tuple[str, int, int, int]]] | None = None
    is_file: bool = True

    def begins(self, head: bytes) -> bool:
        """Whether a file is of this format, by its first bytes."""
        has_mark = bool(self.mark) and head.startswith(self.mark)
        return has_mark and (self.is_marked is None or self.is_marked(head))


def detected_format(path: str, start: bytes) -> str | None:
    """Returns the name of the format that a file has by its ending or else its first bytes.

    Args:
      path: path of the file.
      start: its first bytes, decompressed, without white space before them.

    Returns:
      The name, or None if the file has none of the known endings and beginnings.
    """
    pattern = pattern_of_ending(ending(path))
    if TEXT_FILES.is_known(pattern):
        return TEXT_FILES[pattern].name
    for text_format in matching_starts(TEXT_FILES, start):
        if text_format.begins(start):
            return text_format.name
    return None


def register_format(name: str, **facts: Any) -> Callable[[Callable], Callable]:
    r"""Decorator that registers a function as the reader of a format of text files.

    The function takes a source and a `TextReading`, and yields the text of each document, or None
    for a record without text, which is counted. The source is

    * with `before`, a text of whole documents, of any number. Files are in UTF-8; they are read in
      parallel unless they are compressed, and errors name the line;
    * otherwise the file, a decompressed binary stream; texts may be bytes in UTF-8, too.

    Its docstring says what a document is. Worker processes import its
    module; a format of a script or notebook is read by one process.

    Args:
      name: value of `--format` and `format` that selects it.
      **facts: attributes of `TextFormat`: `endings` and `mark`, by which `auto` detects a file, and
        `before`. An ending or mark that another format has remains with that format.

    Raises:
      ConfigError: a format is already registered under the name.

    Example:
      >>> @register_format("letters", endings=(".letters",), before=re.compile(rb"\n-----\n"))
      ... def read_letters(source, reading):
      ...     yield from filter(str.strip, source.split("\n-----\n"))
    """

    def add(documents: Callable) -> Callable:
        text_format: Any = TextFormat(name, documents, **facts)
        functools.update_wrapper(text_format, documents)
        TEXT_FORMATS.register(name)(text_format)
        register_patterns(TEXT_FILES, text_format.endings, text_format.mark, text_format)
        return documents

    return add


@dataclasses.dataclass(frozen=True)
class Shard:
    """A part of a corpus that is read by one worker.

    Attributes:
      path: path of the file, or name and split of a TFDS data set.
      format: name of its format.
      start: index of the first byte (text that is not compressed), row group or example.
      stop: end of the range (exclusive); -1 for files that are read to the end.
      num_bytes: size on disk in bytes, for progress reports.
      entry: the file as it was found; None for a TFDS data set.
    """

    path: str
    format: str
    start: int
    stop: int
    num_bytes: int
    entry: FileEntry | None = None

    @property
    def key(self) -> list[str | int]:
        """What the records depend on, besides the text: not on the folder or the version."""
        return [os.path.basename(self.path), self.format, self.start, self.stop, self.num_bytes]

    def __reduce__(self) -> tuple:
        # With the reader of its format, whose module another process has to import.
        reader = TEXT_FORMATS[self.format].documents
        values = (self.path, self.format, self.start, self.stop, self.num_bytes, self.entry)
        return Shard, values, {"reader": reader}


class Counts(collections.Counter[str]):
    """{event: number of occurrences}.

    Attributes:
      first_lost: error message of the first unreadable record.
    """

    first_lost: str = ""

    def lose(self, reason: str, message: str) -> None:
        """Counts a record that is left out; `reason` is one of `LOST`."""
        self[reason] += 1
        self.first_lost = self.first_lost or message


@dataclasses.dataclass
class TextReading:
    """A shard that is being read, and options for reading it.

    Attributes:
      shard: the shard.
      options: reading options.
      counts: what was read and left out.
      report: progress callback.
      begin: position in the file of the first record, set when it is known.
      line: number of lines of the shard before the current block.
      record: number of the current record in the shard, from 1.
      reported: number of bytes of the shard that have been reported.
    """

    shard: Shard
    options: ReadOptions
    counts: Counts
    report: Callable[[int], Any]
    begin: int = 0
    line: int = 0
    record: int = 0
    reported: int = 0

    @property
    def place(self) -> str:
        """Place of the current record, for messages."""
        part = f" of part {self.shard.start}:{self.shard.stop}" if self.shard.start else ""
        return f"{self.shard.path}, record {self.record}{part}"

    def lose(self, reason: str, line_number: int, line: str, expected: str) -> None:
        """Counts a record that is left out; too many are an error, see `ReadOptions.max_lost`.

        Args:
          reason: `malformed_records` or `missing_texts`.
          line_number: number of the lost line in the shard, from 1. (The attribute `line` is the
            number of the line before the block.)
          line: the line.
          expected: what was expected there.
        """
        where = f"line {line_number}" + (f" after byte {self.begin}" if self.begin else "")
        self.counts.lose(
            reason, f"{self.shard.path}, {where}: expected {expected}, got {shown(line)}"
        )

    def without_marks(self, text: str) -> str:
        """Returns a text without byte order marks and NUL, which are counted."""
        for character in NOT_TEXT:
            if character in text:
                self.counts["removed_characters"] += text.count(character)
                text = text.replace(character, "")
        return text

    def reach(self, position: int) -> None:
        """Reports that the shard has been read up to a position, in bytes on disk."""
        num_bytes = min(position, self.shard.num_bytes) - self.reported
        if num_bytes > 0:
            self.report(num_bytes)
            self.reported += num_bytes


def unix(text: str) -> str:
    """The text with the line ends of Unix."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text
