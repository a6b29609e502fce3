"""`data` section of the configuration: input windows and the sampling of prediction targets."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any

from official.xlnet.configs.base import Section
from official.xlnet.configs.validation import (
    COUNT,
    COUNT_OR_NONE,
    RATE,
    SHARE,
    Range,
    require,
)
from official.xlnet.files.schema import OneOf

# Settings that the ids of a text depend on, apart from the vocabulary.
TEXT_SETTINGS = ("lowercase", "keep_accents")


@dataclasses.dataclass
class DataConfig(Section):
    """Preprocessing of text into windows, and sampling of prediction targets.

    Attributes:
      seq_len: length of a window in tokens, T.
      reuse_len: stride between consecutive windows in tokens; the hidden states of a window's
        first `reuse_len` tokens are appended to the memory.
      num_predict: number of prediction targets per window, P.
      target_ratio: the paper's K; one token in K is predicted.
      target_unit: unit of a target span: `word` (whole words) or `token` (single word pieces).
      max_span: maximum length of a target span, in units of `target_unit`; 0: single units, drawn
        independently of each other.
      phrases: phrases that are masked as a single word, such as `New York`.
      num_lanes: number of record files (lanes) of the training split.
      bidirectional: whether half of the lanes hold reversed text.
      heldout_fraction: fraction of the tokens held out from training, in [0, 1).
      lowercase: whether text is lower-cased before tokenization.
      keep_accents: whether accents are kept; they are stripped by default.
      max_unknown: largest share of `<unk>` among the tokens of text to train on, and of their
        characters among all, in [0, 1].
      seed: random seed of the preprocessing (held-out split, choice of segments A and B).
    """

    section = "data"

    seq_len: Annotated[int, COUNT] = 512
    reuse_len: Annotated[int, COUNT_OR_NONE] = 256
    num_predict: Annotated[int, COUNT] = 85
    target_ratio: Annotated[float, Range(1)] = 6.0
    target_unit: Annotated[str, OneOf(("word", "token"))] = "word"
    max_span: Annotated[int, COUNT_OR_NONE] = 5
    phrases: tuple[str, ...] = ()
    num_lanes: Annotated[int, Range(1, 99_999)] = 16
    bidirectional: bool = True
    heldout_fraction: Annotated[float, RATE] = 0.05
    lowercase: bool = False
    keep_accents: bool = False
    max_unknown: Annotated[float, SHARE] = 0.2
    seed: Annotated[int, Range(-(2**63), 2**63 - 1)] = 0

    def check(self) -> None:
        """Raises `ConfigError` if a value is out of range or values are incompatible."""
        super().check()
        require(
            0 <= self.reuse_len < self.seq_len - 3,
            "data.reuse_len",
            f"below seq_len - 3 = {self.seq_len - 3} (a window also needs A, B, two SEP and CLS)",
            self.reuse_len,
        )
        require(
            not self.phrases or self.target_unit == "word",
            "data.target_unit",
            "word with data.phrases",
            self.target_unit,
        )
        require(
            not self.bidirectional or self.num_lanes % 2 == 0,
            "data.num_lanes",
            "an even number with bidirectional data",
            self.num_lanes,
        )

    def check_with(self, config: Any) -> None:
        """Raises `ConfigError` if there are more targets than tokens, where targets are drawn."""
        require(
            self.num_predict <= self.seq_len - 3 or config.objective.predicts_all,
            "data.num_predict",
            f"from 1 to seq_len - 3 = {self.seq_len - 3} (SEP and CLS are never targets)",
            self.num_predict,
        )
