"""`objective` section of the configuration: the pre-training objective."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

from official.xlnet.configs.base import Section
from official.xlnet.configs.key_marks import UnreadWith
from official.xlnet.configs.registry import AUXILIARY, INPUT_FORMATS, OBJECTIVES
from official.xlnet.configs.validation import COUNT_OR_NONE, NOT_NEGATIVE, SHARE, Range, require

_WITHOUT_MASKS = UnreadWith("kind", ("permutation", "causal"))
_WITHOUT_ORDERS = UnreadWith("kind", ("denoising", "causal"))


class Stage(NamedTuple):
    """An auxiliary objective and when it is learned.

    Attributes:
      name: name of the auxiliary objective.
      first_step: number of training steps before it begins; from then on it is learned to the end.
      weight: weight of its loss.
    """

    name: str
    first_step: int
    weight: float


@dataclasses.dataclass
class ObjectiveConfig(Section):
    """Pre-training objective; see `official.xlnet.modeling.objectives`.

    Attributes:
      kind: `permutation` (XLNet), `denoising` (BERT), `causal` (GPT, Transformer-XL), or the name
        of an extension.
      target_draws: number of distinct target samples per window, reused cyclically over epochs:
        1 is static masking, BERT uses 10; 0 samples new targets in every epoch.
      left_to_right_share: for `permutation`, probability that a window is predicted from left to
        right, within each of its halves, and not in a random order. Without `data.reuse_len`, a
        window has no halves.
      mask_share: for `denoising`, probability that a target is replaced by `<mask>`.
      random_share: for `denoising`, probability that a target is replaced by a random token.
      input_format: `pairs` (the reuse part, A and B), or the name of an extension, for `denoising`:
        `full_sentences` or `doc_sentences`, as in RoBERTa.
      next_sentence: whether CLS predicts whether B follows A: short for
        `auxiliary: [next_sentence]`.
      auxiliary: objectives that are learned besides `kind`, by name, in the order of their stages;
        see `official.xlnet.modeling.objectives.auxiliary`.
      auxiliary_steps: for each of them, number of steps before it begins; empty: all from the
        start.
      auxiliary_weights: for each of them, weight of its loss; empty: 1.
    """

    section = "objective"
    chooser = "kind"

    kind: str = "permutation"
    target_draws: Annotated[int, COUNT_OR_NONE] = 0
    left_to_right_share: Annotated[float, SHARE, _WITHOUT_ORDERS] = 0.0
    mask_share: Annotated[float, SHARE, _WITHOUT_MASKS] = 0.8
    random_share: Annotated[float, SHARE, _WITHOUT_MASKS] = 0.1
    input_format: Annotated[str, INPUT_FORMATS] = "pairs"
    next_sentence: bool = False
    auxiliary: tuple[str, ...] = ()
    auxiliary_steps: tuple[str, ...] = ()
    auxiliary_weights: tuple[str, ...] = ()

    @property
    def predicts_masked(self) -> bool:
        """Whether a token is predicted where it is masked, from the content stream."""
        return self.kind == "denoising"

    @property
    def predicts_all(self) -> bool:
        """Whether any number of tokens are targets, whatever `data.num_predict` is."""
        return self.kind == "causal"

    def stages(self) -> list[Stage]:
        """Returns the auxiliary objectives, in the order of their stages.

        Raises:
          ConfigError: numbers are missing, or the steps are not in order.
        """
        steps = self._numbers("auxiliary_steps", int, COUNT_OR_NONE, default=0)
        weights = self._numbers("auxiliary_weights", float, NOT_NEGATIVE, default=1.0)
        require(
            list(steps) == sorted(steps),
            "objective.auxiliary_steps",
            "an ascending order, as a stage keeps the objectives of the earlier ones",
            steps,
        )
        first = [Stage("next_sentence", 0, 1.0)] if self.next_sentence else []
        return first + [Stage(*stage) for stage in zip(self.auxiliary, steps, weights, strict=True)]

    def _numbers(self, key: str, kind: Callable, allowed: Range, default: float) -> list:
        """The numbers of a key, one for each auxiliary objective."""
        texts = getattr(self, key)
        expected = f"{len(self.auxiliary)} numbers, each {allowed}, or none"
        require(len(texts) in (0, len(self.auxiliary)), f"objective.{key}", expected, texts)
        try:
            numbers = [kind(text) for text in texts]
        except ValueError:
            numbers = [float("nan")]
        require(all(map(allowed.holds, numbers)), f"objective.{key}", expected, texts)
        return numbers or [default] * len(self.auxiliary)

    def check(self) -> None:
        """Raises `ConfigError` if a value is out of range or values are incompatible."""
        super().check()
        shares = self.mask_share, self.random_share
        require(
            sum(shares) <= 1,
            "objective.mask_share and random_share",
            "probabilities that sum to at most 1",
            shares,
        )
        names = [stage.name for stage in self.stages()]
        require(
            len(set(names)) == len(names), "objective.auxiliary", "different names", tuple(names)
        )
        expected = "one that reads B, with next_sentence"
        is_read = self.kind != "causal" or "next_sentence" not in names
        require(is_read, "objective.kind", expected, self.kind)

    def check_with(self, config: Any) -> None:
        """Raises `ConfigError` if a model is to be pre-trained with an unknown objective.

        A fine-tuned model keeps the name of its objective, whose module it does not need.
        """
        if not config.task.name:
            OBJECTIVES.check(self.kind)
            for stage in self.stages():
                AUXILIARY.check(stage.name)
