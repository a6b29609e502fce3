"""Extractive question answering: SQuAD."""

from __future__ import annotations

import dataclasses
from typing import Annotated

from official.xlnet.configs.base import register_settings
from official.xlnet.configs.key_marks import MAY_CHANGE
from official.xlnet.configs.validation import COUNT, FINITE
from official.xlnet.data.examples import Example
from official.xlnet.tasks.settings import QueryConfig

NAMES = ("question_answering", "question_answering_simple")
DATASETS = {"squad": {"name": "question_answering", "metric": "f1"}}
INPUTS = ("question", "context")


@register_settings("task", name=["question_answering", "question_answering_simple"])
class AnswerConfig(QueryConfig):
    """Answers in a paragraph; `question_answering_simple` has ends that do not depend on starts.

    Attributes:
      answer_length: maximum length of an answer, in tokens.
      start_n_top: beam size over answer start positions.
      end_n_top: beam size over answer end positions, per start position.
      n_best: number of answers in a prediction.
      null_threshold: "no answer" is predicted if its log odds exceed this threshold.
    """

    weighs_examples = True

    answer_length: Annotated[int, COUNT] = 64
    start_n_top: Annotated[int, COUNT] = 5
    end_n_top: Annotated[int, COUNT] = 5
    n_best: Annotated[int, COUNT] = 20
    null_threshold: Annotated[float, FINITE, MAY_CHANGE] = 0.0

    @property
    def shortest_input(self) -> int:  # type: ignore[override]
        return max(self.start_n_top, self.end_n_top)


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

    @property
    def expected(self):
        return [text for text, _ in self.answers]
