"""Multiple-choice tasks: RACE, SWAG."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from official.xlnet.errors import DataError
from official.xlnet.tasks.batching import Unit
from official.xlnet.tasks.labels import combined, rounded, softmax
from official.xlnet.tasks.multiple_choice.examples import ChoiceExample
from official.xlnet.tasks.reports import draw_confusion
from official.xlnet.tasks.task import Task, register_task

_BLANK = "_"


@register_task("multiple_choice")
class MultipleChoice(Task):
    """Multiple-choice task. A unit holds all options of a question, one sequence each.

    RACE: passage | SEP | question with the option in its blank, or appended | SEP | CLS
    SWAG: context | SEP | ending | SEP | CLS
    """

    @classmethod
    def complete(cls, config, examples):
        most = max(len(example.choices) for example in examples)
        if most > config.task.num_choices:
            raise DataError(
                f"training data: expected up to task.num_choices = {config.task.num_choices} "
                f"options, got {most}"
            )
        if len({example.label for example in examples}) < 2:
            raise DataError(
                "training data: expected at least two different correct options, got one"
            )

    @property
    def num_sequences(self) -> int:
        """Number of options of a question, S."""
        return self.config.task.num_choices

    def units(self, example):
        missing = self.num_sequences - len(example.choices)
        if missing < 0 or len(example.choices) < 2:
            raise DataError(
                f"{example.id}: expected from 2 to task.num_choices = {self.num_sequences} "
                f"options, got {len(example.choices)}"
            )
        sequences = [
            self.pack([self.tokenizer.encode(text) for text in texts_of(example, choice)])
            for choice in example.choices
        ]
        labels = {} if example.label is None else {"label": np.array(example.label, np.int32)}
        return [Unit(sequences + [{}] * missing, labels)]

    def predict(self, example, outputs):
        probability_S = softmax(outputs[0]["logits"][: len(example.choices)])
        return {"id": example.id, **_prediction(probability_S)}

    def combine(self, predictions):
        """Averages log-probabilities."""
        return {
            **predictions[0],
            **_prediction(combined([p["probabilities"] for p in predictions])),
        }

    def evaluate(self, examples, predictions):
        """Computes accuracy, also for each group of examples."""
        is_correct = _is_correct(examples, predictions)
        results = {"accuracy": float(np.mean(is_correct))}
        groups = np.array([example.group for example in examples])
        for group in sorted(set(groups) - {""}):
            results[f"accuracy_{group}"] = float(np.mean(is_correct[groups == group]))
        return results

    def draw(self, axes, examples, predictions):
        """Plots the confusion matrix of option indices."""
        true, predicted = [e.label for e in examples], [p["choice"] for p in predictions]
        draw_confusion(axes, list(range(self.num_sequences)), true, predicted)


def texts_of(example: ChoiceExample, choice: str) -> Sequence[str]:
    """Returns the texts of the sequence for one option.

    The option replaces the first blank `_` of the last text, or is appended to it.

    Args:
      example: a question with its options.
      choice: the option.

    Example:
      >>> texts_of(ChoiceExample("1", ("Passage.", "He is _ ."), ("old", "ill")), "old")
      ('Passage.', 'He is old .')
    """
    *shared, last = example.texts
    if not shared:
        return last, choice
    if _BLANK in last:
        return *shared, last.replace(_BLANK, choice, 1)
    return *shared, f"{last} {choice}"


def _prediction(probability_S):
    return {"choice": int(np.argmax(probability_S)), "probabilities": rounded(probability_S)}


def _is_correct(examples, predictions) -> np.ndarray:
    return np.array([e.label == p["choice"] for e, p in zip(examples, predictions, strict=True)])
