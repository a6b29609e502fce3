"""What decides the bytes of a data set, apart from the text and the vocabulary."""

from __future__ import annotations

import dataclasses
from typing import Any

from official.xlnet.errors import DataError

FORMATS = ("auto", "text", "jsonl", "wiki", "parquet")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """How input files are read.

    Attributes:
      format: one of `FORMATS`; `auto` goes by file name and first bytes.
      text_field: field of JSON lines, column of Parquet or feature of TFDS that holds the text.
      on_bad_utf8: `error`, or `replace` by U+FFFD.
    """

    format: str = "auto"
    text_field: str = "text"
    on_bad_utf8: str = "error"

    def __post_init__(self):
        """Raises `DataError` where a value is none of the allowed ones."""
        for name, allowed in (("format", FORMATS), ("on_bad_utf8", ("error", "replace"))):
            if getattr(self, name) not in allowed:
                raise DataError(
                    f"{name}: expected one of {', '.join(allowed)}, got {getattr(self, name)!r}"
                )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings(ReadOptions):
    """Settings of a preparation; small, and sent to every worker.

    Attributes:
      seq_len: tokens T of a window.
      reuse_len: tokens by which windows advance.
      num_lanes: record files of the training split.
      bidirectional: whether odd lanes are reversed text.
      heldout_fraction: share of documents kept out of training.
      lowercase: whether text is lower-cased.
      keep_accents: whether accents are kept.
      seed: seed of A/B choices and of the held-out split.
      min_words: documents with fewer words are dropped.
      drop_low_quality: whether documents that do not look like prose are dropped.
      drop_duplicates: whether only the first of equal documents is kept.
      allow_fewer_lanes: whether a small corpus may give fewer lanes than `num_lanes`.
      compress: whether record files are compressed with gzip.
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

    def __post_init__(self):
        """Raises `DataError` where a value cannot be used."""
        super().__post_init__()
        if not 1 <= self.reuse_len <= self.seq_len - 5:
            raise DataError(
                f"data.reuse_len: expected from 1 to seq_len - 5 = {self.seq_len - 5} to write "
                f"records (windows advance by it, and A and B need a token each), "
                f"got {self.reuse_len}"
            )

    @classmethod
    def from_config(cls, data: Any, **options: Any) -> Settings:
        """Settings of the `data` section of a configuration, plus the options of the command.

        Raises:
          DataError: a value cannot be used.
        """
        shared = {
            field.name: getattr(data, field.name)
            for field in dataclasses.fields(cls)
            if hasattr(data, field.name)
        }
        return cls(**shared, **options)

    @property
    def span_len(self) -> int:
        """Tokens of A and B together: T minus the reuse part, two SEP and CLS."""
        return self.seq_len - self.reuse_len - 3

    @property
    def directions(self) -> int:
        """Lanes that show the same text: forward, and reversed where data is bidirectional."""
        return 2 if self.bidirectional else 1
