"""`objective` section of the configuration: the pre-training objective."""

from __future__ import annotations

import dataclasses

from official.xlnet.configs.base import Config
from official.xlnet.configs.validation import (
    COUNT_OR_NONE,
    SHARE,
    Allowed,
    check_values,
    require,
)

_ALLOWED: dict[str, Allowed] = {
    "target_draws": COUNT_OR_NONE,
    "mask_share": SHARE,
    "random_share": SHARE,
}


@dataclasses.dataclass
class ObjectiveConfig(Config):
    """Pre-training objective; see `official.xlnet.modeling.objectives`.

    Attributes:
      kind: `permutation` (XLNet), `denoising` (BERT) or `causal` (GPT, Transformer-XL).
      target_draws: number of distinct target samples per window, reused cyclically over epochs:
        1 is static masking, BERT uses 10; 0 samples new targets in every epoch.
      mask_share: for `denoising`, probability that a target is replaced by `<mask>`.
      random_share: for `denoising`, probability that a target is replaced by a random token.
      next_sentence: whether to add next-sentence prediction: CLS predicts whether B follows A.
    """

    kind: str = "permutation"
    target_draws: int = 0
    mask_share: float = 0.8
    random_share: float = 0.1
    next_sentence: bool = False

    def check(self) -> None:
        """Raises `ConfigError` if a value is out of range or values are incompatible."""
        check_values("objective", self, _ALLOWED)
        shares = self.mask_share, self.random_share
        require(
            sum(shares) <= 1,
            "objective.mask_share and random_share",
            "probabilities that sum to at most 1",
            shares,
        )
