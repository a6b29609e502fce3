"""Settings of data preparation; with the text and the vocabulary they determine the output."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING, Annotated

from official.xlnet.data.lost_rows import MAX_LOST, MaxLost
from official.xlnet.errors import DataError
from official.xlnet.files.schema import OneOf, Range, check_fields

if TYPE_CHECKING:  # Importing it loads TensorFlow, which workers do not need.
    pass
MAX_VOCAB_SIZE = 1 << 21  # Largest that records can hold.
OnBadUtf8 = Annotated[str, OneOf(("error", "replace"))]


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """Options for reading input files.

    Attributes:
      format: name of a format in `configs.registry.TEXT_FORMATS`; `auto` detects it from the name
        and first bytes of a file.
      text_field: JSON field, Parquet column or TFDS feature that contains the text.
      on_bad_utf8: handling of invalid UTF-8: `error`, or `replace` by U+FFFD.
      document_start: regular expression of the beginning of a document's first line, in plain
        text; empty: blank lines separate documents.
      max_lost: largest share of the records that may be unreadable or without text.
      keep_whitespace: whether lines are not stripped and blank ones are kept, as the vocabulary
        says; blank lines separate the documents of plain text nevertheless.

    Raises:
      ConfigError: a value is out of range.
      DataError: it is of another type, or `document_start` is not a regular expression.
    """

    format: str = "auto"
    text_field: str = "text"
    on_bad_utf8: OnBadUtf8 = "error"
    document_start: str = ""
    max_lost: MaxLost = MAX_LOST
    keep_whitespace: bool = False

    def __post_init__(self):
        """Validates the values."""
        check_fields(self)
        try:
            self.document_starts()
        except (re.error, OverflowError, RecursionError) as error:
            raise DataError(
                f"document_start: expected a regular expression, got {self.document_start!r}: "
                f"{error}"
            ) from None

    def document_starts(self) -> tuple[re.Pattern[bytes], re.Pattern[str]]:
        """Patterns of the line end before a document, in UTF-8, and of its start, in text.

        The first one matches complete lines only, as the rest of a line at the end of a block may
        decide. Text has the line end of Unix alone.
        """
        start = self.document_start
        before = rb"[\r\n](?=(?:%b)[^\r\n]*[\r\n])" % start.encode("utf-8", "surrogateescape")
        return re.compile(before), re.compile(rf"(?<=\n)(?={start})")


@dataclasses.dataclass(frozen=True, kw_only=True)
class SampleOptions(ReadOptions):
    """Options for reading a sample of the lines of a corpus.

    Attributes:
      sample_bytes: approximate amount of text to sample, in bytes.
      seed: random seed of the sample.
      progress: whether to show a progress bar, on a terminal or in a notebook.

    Raises:
      DataError: a value is not allowed.
    """

    document_start: str = dataclasses.field(default="", init=False)  # Lines are sampled.
    sample_bytes: Annotated[int, Range(1, 2**62)] = 100_000_000
    seed: Annotated[int, Range(0, 2**32 - 1)] = 0
    progress: bool = False
