"""Key of GPT's auxiliary loss in the `task` section."""

from __future__ import annotations

from official.xlnet.configs.base import register_settings
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.task import TaskConfig
from official.xlnet.configs.validation import NOT_NEGATIVE, require_one_of


@register_settings("task")
class LanguageModelLossConfig(TaskConfig):
    """A language model may be trained beside a task.

    Attributes:
      lm_weight: weight λ of the auxiliary language-model loss of GPT: loss of the task plus λ
        times that of the text from left to right; 0: none.
    """

    allowed = {"lm_weight": NOT_NEGATIVE}

    lm_weight: float = 0.0

    def auxiliary_losses(self) -> dict[str, float]:
        own = {"language_model": self.lm_weight} if self.lm_weight else {}
        return super().auxiliary_losses() | own

    def check_with(self, config: XLNetConfig) -> None:
        super().check_with(config)
        if self.lm_weight:
            key = "model.network of a model that is fine-tuned with task.lm_weight"
            require_one_of(key, config.model.network, ("xlnet",))
            key = "objective.kind of a model that is fine-tuned with task.lm_weight"
            require_one_of(key, config.objective.kind, ("permutation", "causal"))
