"""Keys of MT-DNN's answer module in the `task` section."""

from __future__ import annotations

from official.xlnet.configs.base import register_settings
from official.xlnet.configs.validation import RATE, Range
from official.xlnet.errors import require_data
from official.xlnet.tasks.settings import AnswerModuleConfig


@register_settings("task", answer_module=["san"])
class StochasticAnswerConfig(AnswerModuleConfig):
    """`answer_module` may be `san` (stochastic answer network of MT-DNN, for pairs of texts).

    Attributes:
      answer_steps: number of steps of `san`, K.
      answer_dropout: probability that a step of `san` does not count, in training.
    """

    allowed = {"answer_steps": Range(1, 100), "answer_dropout": RATE}
    unread_with = dict.fromkeys(allowed, ("answer_module", ("summary",)))

    of_head = (*AnswerModuleConfig.of_head, "answer_steps")

    answer_steps: int = 5
    answer_dropout: float = 0.1

    def check_examples(self, examples):
        super().check_examples(examples)
        found = {len(example.texts) for example in examples}
        require_data(
            self.answer_module != "san" or found == {2},
            "training data",
            "two texts in each example, which task.answer_module=san compares",
            ", ".join(map(str, sorted(found))),
        )
