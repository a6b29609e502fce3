"""Multiple-choice tasks: RACE, SWAG."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import tensorflow as tf

from official.xlnet.errors import require_data
from official.xlnet.tasks.batching import Arrays, Unit
from official.xlnet.tasks.labels import combined, error_of_class, rounded, softmax
from official.xlnet.tasks.multiple_choice import ChoiceConfig, ChoiceExample
from official.xlnet.tasks.task import Task, in_groups, register_task

_ENCODING = ("utf-8", "surrogatepass")  # Encodes any string of Python.


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
        ChoiceExample(
            id=f"{who} {label}",
            texts=("It began to rain .", f"{who} took"),
            choices=choices,
            label=label,
            group=group,
        )
        for who, group in (
            ("Ann", "high"),
            ("Bob", "high"),
            ("He", "middle"),
            ("She", "middle"),
            ("They", "middle"),
        )
        for label, choices in (
            (0, ("an umbrella", "a nap", "the salt")),
            (2, ("the salt", "a nap", "an umbrella")),
        )
    )

    @classmethod
    def complete_settings(cls, config, examples):
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
            with_text = [index for index, choice in enumerate(example.choices) if choice]
            is_known = example.label is None or example.label in with_text
            require_data(is_known, example.id, "the index of an option with text", example.label)
        return in_groups(self._read, examples, lambda example: len(example.texts))

    def _read(self, _, examples: Sequence[ChoiceExample]) -> list[list[Unit]]:
        """Converts examples with equal numbers of texts."""
        rows = [[*example.texts] for example in examples]
        for texts in rows:
            if len(texts) < 2:
                texts.append("")  # Without a question, the choice follows the text.
        *passages, questions = zip(*rows, strict=True)
        # One for each of the N choices of all examples.
        choices_N = [choice.encode(*_ENCODING) for e in examples for choice in e.choices]
        row_N = np.repeat(np.arange(len(examples)), [len(e.choices) for e in examples])
        questions_N = tf.gather([text.encode(*_ENCODING) for text in questions], row_N)
        filled_N = [x.decode(*_ENCODING) for x in with_choices(questions_N, choices_N).numpy()]
        columns = [tf.gather(self.tokens(texts), row_N) for texts in passages]
        sequences_N = iter(self.pack([*columns, self.tokens(filled_N)]))
        return [[self._unit(example, sequences_N)] for example in examples]

    def _unit(self, example: ChoiceExample, sequences: Iterator[Arrays]) -> Unit:
        """The unit of an example, which takes a sequence for each of its choices."""
        num_choices = self.config.task.settings(ChoiceConfig).num_choices
        own_sequences: list[Arrays] = []
        for choice in example.choices:
            sequence = next(sequences)
            # An exported model ignores empty choices, too: its rows are filled up with them.
            is_ignored = not choice and any(example.choices)
            own_sequences.append({} if is_ignored else sequence)
        own_sequences += [{}] * (num_choices - len(example.choices))
        labels: Arrays = {}
        if example.label is not None:
            labels["label"] = np.array(example.label, np.int32)
        return Unit(own_sequences, labels)

    def predict(self, example, outputs):
        probability_S = softmax(outputs[0]["logits"][: len(example.choices)])
        return {"id": example.id, **_prediction(probability_S)}

    def combine(self, predictions):
        """Averages log-probabilities."""
        probability_S = combined([prediction["probabilities"] for prediction in predictions])
        return predictions[0] | _prediction(probability_S)

    def error_and_probability(self, example, prediction):
        return error_of_class(prediction["probabilities"], example.label, prediction["choice"])

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
