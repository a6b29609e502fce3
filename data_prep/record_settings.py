"""Settings of data preparation; with the text and the vocabulary they determine the records."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from data_prep.settings import ReadOptions
from official.xlnet.errors import require_data

if TYPE_CHECKING:  # Importing it loads TensorFlow, which workers do not need.
    from official.xlnet.configs.data import DataConfig

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
      max_unknown: largest share of `<unk>` among the tokens, and of their characters among all,
        that is not an error.

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
        require_data(
            self.num_lanes % self.directions == 0,
            "data.num_lanes",
            "an even number with bidirectional data",
            self.num_lanes,
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
