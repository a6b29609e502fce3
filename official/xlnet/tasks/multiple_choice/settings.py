"""Keys of multiple choice."""

from __future__ import annotations

from official.xlnet.configs.base import register_settings
from official.xlnet.configs.task import TaskConfig
from official.xlnet.configs.validation import Range


@register_settings("task", name=["multiple_choice"])
class ChoiceConfig(TaskConfig):
    """Choices of a question.

    Attributes:
      num_choices: number of choices of a multiple-choice question.
    """

    allowed = {"num_choices": Range(2, 1000)}

    num_choices: int = 4
