"""Example of extractive question answering; the question may be unanswerable."""

from __future__ import annotations

import dataclasses

from official.xlnet.data.examples import Example


@dataclasses.dataclass(frozen=True, slots=True)
class QuestionExample(Example):
    """Example of extractive question answering; the question may be unanswerable.

    Attributes:
      question: the question.
      context: the paragraph that may contain the answer.
      answers: reference answers as (text, start offset in `context` in code points); empty if the
        question is unanswerable.
      has_label: whether the example is labelled.
      weight: weight of the example in the training loss.
    """

    label_field = "has_label"

    question: str
    context: str
    answers: tuple[tuple[str, int], ...] = ()
    has_label: bool = True
    weight: float = 1.0
