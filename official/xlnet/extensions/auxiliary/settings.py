"""What auxiliary objectives of BERT and ERNIE need of the configuration."""

from __future__ import annotations

from official.xlnet.configs.base import register_settings
from official.xlnet.configs.experiment import XLNetConfig
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


@register_settings("objective", auxiliary=("capitalization", "token_document"))
class ErnieObjectiveConfig(ObjectiveConfig):
    """`auxiliary` may name `capitalization` and `token_document`."""

    def check_with(self, config: XLNetConfig) -> None:
        """Raises `ConfigError` if the question of an objective has no answer or shows it."""
        super().check_with(config)
        if "capitalization" in self.auxiliary:
            lowercase, expected = config.data.lowercase, "false with capitalization"
            require(not lowercase, "data.lowercase", expected, lowercase)
            expected = "permutation or denoising with capitalization"
            require(self.kind != "causal", "objective.kind", expected, self.kind)
        if "token_document" in self.auxiliary:
            reuse_len, mem_len = config.data.reuse_len, config.model.mem_len
            require(reuse_len > 0, "data.reuse_len", "above 0 with token_document", reuse_len)
            expected = "above 0 with denoising and token_document, so that the reuse part is read "
            sees_all = self.kind == "denoising" and mem_len == 0
            require(not sees_all, "model.mem_len", f"{expected}alone", mem_len)
