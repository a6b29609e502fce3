"""Settings of data preparation; with the text and the vocabulary they determine the output."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING, Annotated, Any

from official.xlnet.data.lost_rows import MAX_LOST, MaxLost
from official.xlnet.errors import DataError, require_data
from official.xlnet.files.schema import OneOf, Range, check_fields

if TYPE_CHECKING:  # Importing it loads TensorFlow, which workers do not need.
    from official.xlnet.configs.data import DataConfig
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


# Settings that records do not depend on, or that follow from the vocabulary; the manifest keeps
# them for who looks at the records.
RECORDED_ONLY = (
    "keep_whitespace",
    "max_lost",
    "max_unknown",
    "num_predict",
    "target_ratio",
    "target_unit",
    "max_span",
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings(ReadOptions):
    """Settings of data preparation; sent to every worker.

    Attributes:
      seq_len: window length in tokens, T.
      reuse_len: stride between windows in tokens.
      num_lanes: number of record files (lanes) of the training split.
      bidirectional: whether odd lanes hold reversed text.
      heldout_fraction: fraction of the tokens held out from training, in [0, 1).
      lowercase: whether text is lower-cased.
      keep_accents: whether accents are kept.
      seed: random seed of the held-out split and of the choice of segments A and B.
      min_words: minimum number of words per document; shorter documents are dropped.
      drop_low_quality: whether documents that fail the quality heuristics are dropped.
      drop_duplicates: whether exact duplicates of documents are dropped.
      allow_fewer_lanes: whether to write fewer lanes than `num_lanes` if the corpus is too small.
      compress: whether record files are compressed with gzip.
      num_predict: number of prediction targets per window in training; see `RECORDED_ONLY`.
      target_ratio: one token in `target_ratio` is predicted in training.
      target_unit: unit of a target span in training, `word` or `token`.
      max_span: maximum length of a target span in training.
      max_unknown: largest share of `<unk>` among the tokens that is not an error.

    Raises:
      DataError: a value is not allowed.
    """

    seq_len: int
    reuse_len: int
    num_lanes: int
    bidirectional: bool
    heldout_fraction: float
    lowercase: bool
    keep_accents: bool
    seed: int
    min_words: int = 0
    drop_low_quality: bool = False
    drop_duplicates: bool = False
    allow_fewer_lanes: bool = False
    compress: bool = False
    num_predict: int = 85
    target_ratio: float = 6.0
    target_unit: str = "word"
    max_span: int = 5
    max_unknown: float = 0.2

    def __post_init__(self):
        """Validates the values."""
        super().__post_init__()
        require_data(
            1 <= self.reuse_len <= self.seq_len - 5,
            "data.reuse_len",
            f"from 1 to seq_len - 5 = {self.seq_len - 5} to write records (windows advance by "
            "it, and A and B need a token each)",
            self.reuse_len,
        )

    @classmethod
    def from_config(cls, data: DataConfig, **options: Any) -> Settings:
        """Creates settings from the `data` section of a configuration.

        Args:
          data: the `data` section.
          **options: values of the fields that it does not have, by name.

        Raises:
          DataError: a value is not allowed.
        """
        shared = {
            field.name: getattr(data, field.name)
            for field in dataclasses.fields(cls)
            if hasattr(data, field.name)
        }
        return cls(**shared, **options)

    @property
    def tokens_per_window(self) -> int:
        """Number of tokens of text in a window: T minus two SEP and CLS."""
        return self.seq_len - 3

    @property
    def span_len(self) -> int:
        """Total length of A and B in tokens: T minus the reuse part, two SEP and CLS."""
        return self.seq_len - self.reuse_len - 3

    @property
    def directions(self) -> int:
        """Number of lanes with the same text: 2 (forward and reversed) if bidirectional, else 1."""
        return 2 if self.bidirectional else 1
