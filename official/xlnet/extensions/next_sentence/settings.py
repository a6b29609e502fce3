"""The key of next-sentence prediction in the `objective` section."""

from __future__ import annotations

from official.xlnet.configs.base import register_settings
from official.xlnet.configs.objective import ObjectiveConfig, Stage
from official.xlnet.configs.validation import require


@register_settings("objective", auxiliary=("next_sentence",))
class NextSentenceConfig(ObjectiveConfig):
    """`auxiliary` may name `next_sentence`.

    Attributes:
      next_sentence: whether CLS predicts whether B follows A: short for
        `auxiliary: [next_sentence]`.
    """

    next_sentence: bool = False

    def stages(self) -> list[Stage]:
        first = [Stage("next_sentence", 0, 1.0)] if self.next_sentence else []
        return [*first, *super().stages()]

    def check(self) -> None:
        super().check()
        require(
            self.kind != "causal" or "next_sentence" not in [stage.name for stage in self.stages()],
            "objective.kind",
            "one that reads B, with next_sentence",
            self.kind,
        )
