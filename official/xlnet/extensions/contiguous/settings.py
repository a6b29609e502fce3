"""What RoBERTa's input formats need of the configuration."""

from __future__ import annotations

from official.xlnet.configs.base import register_settings
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.objective import ObjectiveConfig
from official.xlnet.configs.validation import require

FORMATS = ("full_sentences", "doc_sentences")


@register_settings("objective", input_format=FORMATS)
class ContiguousConfig(ObjectiveConfig):
    """`input_format` may be `full_sentences` or `doc_sentences`."""

    def check_with(self, config: XLNetConfig) -> None:
        super().check_with(config)
        if self.input_format not in FORMATS:
            return
        where = f"with objective.input_format={self.input_format}"
        require(self.kind == "denoising", "objective.kind", f"denoising {where}", self.kind)
        names = [stage.name for stage in self.stages()]
        require(not names, "objective.auxiliary", f"none {where}, which has no B", names)
        if self.input_format == "doc_sentences":
            mem_len = config.model.mem_len
            require(mem_len == 0, "model.mem_len", f"0 {where}", mem_len)
