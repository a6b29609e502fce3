"""Example of multiple choice."""

from __future__ import annotations

import dataclasses

from official.xlnet.data.examples import Example


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

    def inputs(self, names):
        passage, question = (*self.texts, "")[:2]
        return {"passage": passage, "question": question, "choices": list(self.choices)}
