"""Multiple choice: RACE, SWAG."""

from __future__ import annotations

import dataclasses
from typing import Annotated

from official.xlnet.configs.base import register_settings
from official.xlnet.configs.task import TaskConfig
from official.xlnet.configs.validation import Range
from official.xlnet.data.examples import Example
from official.xlnet.errors import require_data

DATASETS = {name: {"name": "multiple_choice", "num_choices": 4} for name in ("race", "swag")}
INPUTS = ("passage", "question", "choices")


@register_settings("task", name=["multiple_choice"])
class ChoiceConfig(TaskConfig):
    """Choices of a question.

    Attributes:
      num_choices: number of choices of a multiple-choice question.
    """

    needs_names = True
    has_number_labels = True

    num_choices: Annotated[int, Range(2, 1000)] = 4


@dataclasses.dataclass(frozen=True, slots=True)
class ChoiceExample(Example):
    """Example of multiple choice.

    Attributes:
      texts: texts shared by all choices, e.g. passage and question.
      choices: the choices.
      label: index of the correct choice.
      group: subset with a separate metric, e.g. `middle` of RACE.
    """

    texts: tuple[str, ...]
    choices: tuple[str, ...]
    label: int | None = None
    group: str = ""

    @property
    def passage(self) -> str:
        """The first text, which several questions may share."""
        return self.texts[0]

    def inputs(self, names):
        require_data(len(self.texts) <= 2, self.id, "a passage and a question", self.texts)
        passage, question = (*self.texts, "")[:2]
        return {"passage": passage, "question": question, "choices": list(self.choices)}
