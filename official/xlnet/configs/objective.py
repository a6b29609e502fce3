"""Section `objective`: what pre-training predicts."""

from __future__ import annotations

import dataclasses

from official.modeling import hyperparams
from official.xlnet.configs.validation import require


@dataclasses.dataclass
class ObjectiveConfig(hyperparams.Config):
    """What pre-training predicts; see `objectives`.

    Attributes:
      kind: `permutation` (XLNet), `denoising` (BERT) or `causal` (GPT, Transformer-XL).
      target_draws: how many draws of targets a window has, taken in turn by epoch: 1 is a static
        mask, BERT has 10; 0 draws anew in every epoch.
      mask_share: of `denoising`: probability that a target becomes `<mask>`.
      random_share: of `denoising`: probability that a target becomes any other piece.
      next_sentence: whether CLS also predicts if B follows A.
    """

    kind: str = "permutation"
    target_draws: int = 0
    mask_share: float = 0.8
    random_share: float = 0.1
    next_sentence: bool = False

    def check(self) -> None:
        """Raises `ConfigError` where a value is out of range or values contradict each other."""
        require(self.target_draws >= 0, "objective.target_draws", "0 or more", self.target_draws)
        shares = self.mask_share, self.random_share
        require(
            min(shares) >= 0 and sum(shares) <= 1,
            "objective.mask_share and random_share",
            "shares from 0 to 1, and at most 1 together",
            shares,
        )
