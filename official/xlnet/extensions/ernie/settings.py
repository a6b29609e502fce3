"""What ERNIE's auxiliary objectives need of the configuration."""

from __future__ import annotations

from official.xlnet.configs.base import register_settings
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.objective import ObjectiveConfig
from official.xlnet.configs.validation import require


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
