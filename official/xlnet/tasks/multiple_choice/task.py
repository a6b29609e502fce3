"""Multiple-choice tasks: RACE, SWAG."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from official.xlnet.errors import require_data
from official.xlnet.tasks.batching import Unit
from official.xlnet.tasks.labels import combined, judged, rounded, softmax
from official.xlnet.tasks.multiple_choice import ChoiceConfig, ChoiceExample
from official.xlnet.tasks.task import Task, in_groups, register_task

_ENCODING = ("utf-8", "surrogatepass")  # Of any string of Python.


def with_choices(question: tf.Tensor, choice: tf.Tensor) -> tf.Tensor:
    """Puts a choice into the first blank `_` of each question, or appends it.

    Args:
      question: string [...].
      choice: string [...].

    Returns:
      string [...].

    Example:
      >>> with_choices(tf.constant(["He is _ .", "Who?"]), tf.constant(["old", "I"])).numpy()
      array([b'He is old .', b'Who? I'], dtype=object)
    """
    has_blank = tf.strings.regex_full_match(question, "(?s).*_.*")
    before = tf.strings.regex_replace(question, "(?s)_.*", "")
    after = tf.strings.regex_replace(question, "(?s)^[^_]*_", "")
    return tf.where(
        has_blank,
        tf.strings.join([before, choice, after]),
        tf.strings.join([question, choice], separator=" "),
    )


@register_task("multiple_choice")
class MultipleChoice(Task):
    """Multiple-choice task. A unit holds all options of a question, one sequence each.

    RACE: passage | SEP | question with the option in its blank, or appended | SEP | CLS
    SWAG: context | SEP | ending | SEP | CLS
    """

    metrics = ("accuracy", "accuracy_*")
    typical = tuple(
        ChoiceExample(f"{who} {label}", ("It began to rain .", f"{who} took"), choices, label)
        for who in ("Ann", "Bob", "He", "She", "They")
        for label, choices in (
            (0, ("an umbrella", "a nap", "the salt")),
            (2, ("the salt", "a nap", "an umbrella")),
        )
    )

    @classmethod
    def complete(cls, config, examples):
        most = max(len(example.choices) for example in examples)
        require_data(
            most <= config.task.num_choices,
            "training data",
            f"up to task.num_choices = {config.task.num_choices} options",
            most,
        )
        require_data(
            len({example.label for example in examples}) >= 2,
            "training data",
            "at least two different correct options",
            "one",
        )

    def read(self, examples):
        most = self.config.task.settings(ChoiceConfig).num_choices
        for example in examples:
            require_data(
                2 <= len(example.choices) <= most,
                example.id,
                f"from 2 to task.num_choices = {most} options",
                len(example.choices),
            )
            texts = [number for number, choice in enumerate(example.choices) if choice]
            is_one = example.label is None or example.label in texts
            require_data(is_one, example.id, "the index of an option with text", example.label)
        return in_groups(self._read, examples, lambda example: len(example.texts))

    def _read(self, _, examples: Sequence[ChoiceExample]) -> list[list[Unit]]:
        """Converts examples with equal numbers of texts."""
        *shared, last = zip(
            *((*e.texts, "")[: max(2, len(e.texts))] for e in examples), strict=True
        )
        row_N = np.repeat(np.arange(len(examples)), [len(e.choices) for e in examples])
        choices = [choice.encode(*_ENCODING) for example in examples for choice in example.choices]
        questions_N = tf.gather([text.encode(*_ENCODING) for text in last], row_N)
        filled = [x.decode(*_ENCODING) for x in with_choices(questions_N, choices).numpy()]
        columns = [tf.gather(self.tokens(column), row_N) for column in shared]
        sequences = iter(self.pack([*columns, self.tokens(filled)]))
        units = []
        for example in examples:
            missing = self.config.task.settings(ChoiceConfig).num_choices - len(example.choices)
            labels = {} if example.label is None else {"label": np.array(example.label, np.int32)}
            # An exported model ignores empty choices, too: its rows are filled up with them.
            is_empty = [not choice and any(example.choices) for choice in example.choices]
            own = [{} if empty else x for empty, x in zip(is_empty, sequences, strict=False)]
            units.append([Unit(own + [{}] * missing, labels)])
        return units

    def predict(self, example, outputs):
        probability_S = softmax(outputs[0]["logits"][: len(example.choices)])
        return {"id": example.id, **_prediction(probability_S)}

    def combine(self, predictions):
        """Averages log-probabilities."""
        return {
            **predictions[0],
            **_prediction(combined([p["probabilities"] for p in predictions])),
        }

    def judge(self, example, prediction):
        return judged(prediction["probabilities"], example.label, prediction["choice"])

    def evaluate(self, examples, predictions):
        """Computes accuracy, also for each group of examples."""
        is_correct = np.array(
            [e.label == p["choice"] for e, p in zip(examples, predictions, strict=True)]
        )
        results = {"accuracy": float(np.mean(is_correct))}
        groups = np.array([example.group for example in examples])
        for group in sorted(set(groups) - {""}):
            results[f"accuracy_{group}"] = float(np.mean(is_correct[groups == group]))
        return results


def _prediction(probability_S):
    return {"choice": int(np.argmax(probability_S)), "probabilities": rounded(probability_S)}
