"""Section `data`: how text becomes windows, and which tokens are prediction targets."""

from __future__ import annotations

import dataclasses

from official.modeling import hyperparams
from official.xlnet.configs.validation import require, require_one_of


@dataclasses.dataclass
class DataConfig(hyperparams.Config):
    """Windows and targets.

    Attributes:
      seq_len: tokens T of a window.
      reuse_len: tokens by which windows advance, and that enter the memory.
      num_predict: targets P of a window.
      target_ratio: the paper's K: one token in K is predicted.
      target_unit: `word` draws spans of whole words, `token` of single pieces.
      max_span: longest span, in units.
      phrases: phrases that count as one word, such as `New York`.
      num_lanes: record shards (lanes) of a data set; half of them are reversed text.
      bidirectional: whether half of the lanes hold reversed text.
      heldout_fraction: share of documents kept out of training.
      lowercase: whether text is lower-cased before it is cut into pieces.
      keep_accents: whether accents are kept.
      seed: seed of everything random in the records.
    """

    seq_len: int = 512
    reuse_len: int = 256
    num_predict: int = 85
    target_ratio: float = 6.0
    target_unit: str = "word"
    max_span: int = 5
    phrases: tuple[str, ...] = ()
    num_lanes: int = 16
    bidirectional: bool = True
    heldout_fraction: float = 0.05
    lowercase: bool = False
    keep_accents: bool = False
    seed: int = 0

    def check(self) -> None:
        """Raises `ConfigError` where a value is out of range or values contradict each other."""
        require(
            0 <= self.reuse_len < self.seq_len - 3,
            "data.reuse_len",
            f"below seq_len - 3 = {self.seq_len - 3} (a window also needs A, B, two SEP and CLS)",
            self.reuse_len,
        )
        require(
            0 < self.num_predict <= self.seq_len - 3,
            "data.num_predict",
            f"from 1 to seq_len - 3 = {self.seq_len - 3} (SEP and CLS are never targets)",
            self.num_predict,
        )
        require(self.target_ratio >= 1, "data.target_ratio", "at least 1", self.target_ratio)
        require_one_of("data.target_unit", self.target_unit, ("word", "token"))
        require(self.max_span >= 1, "data.max_span", "at least 1", self.max_span)
        require(
            not self.phrases or self.target_unit == "word",
            "data.target_unit",
            "word with data.phrases",
            self.target_unit,
        )
        require(self.num_lanes >= 1, "data.num_lanes", "at least 1", self.num_lanes)
        require(
            not self.bidirectional or self.num_lanes % 2 == 0,
            "data.num_lanes",
            "an even number with bidirectional data",
            self.num_lanes,
        )
        require(
            0 <= self.heldout_fraction < 1,
            "data.heldout_fraction",
            "in [0, 1)",
            self.heldout_fraction,
        )
