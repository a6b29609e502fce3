"""Classes of words, on the first token of each, or of other units of a text."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence

import numpy as np

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.registry import LABEL_UNITS
from official.xlnet.errors import DataError, require_data
from official.xlnet.tasks.batching import Unit
from official.xlnet.tasks.labels import complete_labels, label_index, meaning, rounded, softmax
from official.xlnet.tasks.reports import draw_confusion
from official.xlnet.tasks.task import Task, register_task
from official.xlnet.tasks.token_classification import TagConfig, TaggedExample
from official.xlnet.tasks.token_classification.label_units import LabelUnit
from official.xlnet.tasks.token_classification.windows import MARKS
from official.xlnet.tokenization.graph.ragged import rows_of

_OUTSIDE = "O"
_SCHEME = re.compile(r"([BIESLUM])(?:[-_](.*))?", re.DOTALL)
_LETTERS = {*"OBIESLUM"}
_AS_BIOES = {"L": "E", "U": "S", "M": "I"}  # BILOU and BMES in the letters of BIOES.


@register_task("token_classification")
class TokenClassification(Task):
    """Tagging of words, such as named entity recognition, or of other units of a text.

    A sentence of more than `max_length` tokens is split into several windows, between words.
    """

    metrics = ("precision", "recall", "f1", "word_accuracy", "accuracy", "matthews")
    typical = tuple(
        TaggedExample(
            f"{who} {place}",
            (*who.split(), "lives", "in", place),
            ("B-PER", "I-PER", "I-PER")[: len(who.split())] + ("O", "O", "B-LOC"),
        )
        for who in ("Ann", "Ann Lee", "Bob Lee")
        for place in ("Paris", "Rome", "Ghana")
    )

    @property
    def metric(self) -> str:  # type: ignore[override]
        return self.label_unit.metric

    @property
    def label_unit(self) -> LabelUnit:
        """The units that are labelled, as `task.label_unit` names them."""
        return LABEL_UNITS[self.config.task.settings(TagConfig).label_unit]()

    @classmethod
    def complete_settings(cls, config, examples):
        cls.check_units(config, examples)
        tags = (tag for example in examples for tag in example.tags or ())
        labels = complete_labels(config, tags)
        require_data(
            bool(config.task.labels)
            or LABEL_UNITS[config.task.settings(TagConfig).label_unit].may_have_digits
            or not all(map(str.isdecimal, labels)),
            "training data",
            "names of tags, such as B-PER and O",
            f"the numbers {', '.join(labels[:10])}; list their names in task.labels, that of 0 "
            "first, and set task.label_type=int",
        )
        config.task.labels = labels

    @staticmethod
    def check_units(config: XLNetConfig, examples: Sequence[TaggedExample]) -> None:
        """Raises `DataError` if examples are not of the unit that the settings name."""
        unit = LABEL_UNITS[config.task.settings(TagConfig).label_unit]
        for example in examples:
            if example.separator == unit.separator:
                continue
            others = [
                name
                for name in LABEL_UNITS.names()
                if LABEL_UNITS[name].separator == example.separator
            ]
            raise DataError(
                f"example {example.id}: expected labels of {unit.name}s, as in the other data or "
                f"task.label_unit, got labels of {' or '.join(others) or 'other unit'}s"
            )

    def read(self, examples):
        unit, length = self.label_unit, self.config.task.max_length
        values = [self.values(example) for example in examples if example.tags is not None]
        remaining_values = itertools.chain(*values)
        lengths_B = np.array([len(example.words) for example in examples], np.int64)
        windows = unit.windows(self.tokenizer, examples, lengths_B, length)
        number_B, size_U = windows.number_B.numpy(), windows.size_U.numpy()
        self.counts["split"] += int(np.count_nonzero(number_B > 1))
        words_U = np.bincount(windows.window_N, minlength=len(size_U))
        ends_U = np.cumsum(words_U)
        example_U = np.repeat(np.arange(len(examples)), number_B)
        place_N = windows.place_N.numpy()
        sequences = rows_of(windows.features)
        units: list[list[Unit]] = [[] for _ in examples]
        for window, example in enumerate(example_U):
            places = place_N[ends_U[window] - words_U[window] : ends_U[window]]
            size = size_U[window] + MARKS
            if examples[example].tags is not None:
                window_values = [*itertools.islice(remaining_values, len(places))]
                sequences[window] |= self.targets(np.array(window_values), places, size)
            # Counted from the right end of the input.
            unit_places = {"first": places - size}
            units[example].append(Unit([sequences[window]], {}, places=unit_places))
        return units

    def values(self, example: TaggedExample) -> list[float]:
        """Returns the labels of an example as numbers: indices of classes."""
        tags, words = example.tags or (), example.words
        expected = f"a tag for each of {len(words)} words or letters"
        require_data(len(tags) == len(words), example.id, expected, len(tags))
        return [label_index(self.labels, tag, f"example {example.id}") for tag in tags]

    def targets(self, values: np.ndarray, places: np.ndarray, size: int) -> dict[str, np.ndarray]:
        """Returns what the loss of a window needs, by name.

        Args:
          values: labels of its words as numbers.
          places: the token of each word. Only letters can share one.
          size: number of tokens, T.
        """
        return self.label_unit.targets(values, places, size, len(self.labels))

    def predict(self, example, outputs):
        logits = np.concatenate([output["logits"][output["first"]] for output in outputs])
        tags = [self.labels[best] for best in np.argmax(logits, axis=-1)]
        probabilities = rounded(softmax(logits).max(axis=-1))
        return {
            "id": example.id,
            "words": list(example.words),
            "tags": tags,
            "probabilities": probabilities,
        }

    def evaluate(self, examples, predictions):
        """Computes the metrics of the label unit, see `LabelUnit.metrics`."""
        (true, predicted), entities = self._tags(examples, predictions)
        return self.label_unit.metrics(true, predicted, entities)

    def details(self, examples, predictions):
        (true, predicted), entities = self._tags(examples, predictions)
        return self.label_unit.details(self.labels, true, predicted, entities)

    def error_and_probability(self, example, prediction):
        ((true,), (predicted,)), _ = self._tags([example], [prediction])
        return np.mean([a != b for a, b in zip(true, predicted, strict=True)]), np.nan

    def _tags(self, examples, predictions):
        """Tags of the examples and the predictions: as they are, and in the letters of BIOES."""
        known = {meaning(label): label for label in self.labels}
        true = []
        for example in examples:
            tags = []
            for tag in example.tags:
                tags.append(tag if tag in self.labels else known.get(meaning(tag), tag))
            true.append(tags)
        predicted = [prediction["tags"] for prediction in predictions]
        only_letters = {tag for tags in (*true, *predicted) for tag in tags} <= _LETTERS
        true_entities = [entity_tags(tags, only_letters) for tags in true]
        predicted_entities = [entity_tags(tags, only_letters) for tags in predicted]
        return (true, predicted), (true_entities, predicted_entities)

    def draw(self, axes, examples, predictions):
        """Plots the confusion matrix of tags."""
        (true, predicted), _ = self._tags(examples, predictions)
        true_tags = list(itertools.chain(*true))
        predicted_tags = list(itertools.chain(*predicted))
        draw_confusion(axes, list(self.labels), true_tags, predicted_tags)


def entity_tags(tags: Iterable[str], only_letters: bool = False) -> list[str]:
    """Tags in the letters of BIOES, which seqeval reads; a tag without a letter continues its run.

    Args:
      tags: the tags of a sentence.
      only_letters: whether all tags of the data are letters alone, without kinds of entities.

    Example:
      >>> entity_tags(["U-PER", "B-ORG", "L-ORG", "ORG", "ORG", "O"])
      ['S-PER', 'B-ORG', 'E-ORG', 'I-ORG', 'I-ORG', 'O']
    """
    converted = []
    for tag in tags:
        if tag == _OUTSIDE:
            converted.append(tag)
            continue
        match = _SCHEME.fullmatch(f"{tag}-entity" if only_letters else tag)
        letter, entity_type = match.groups() if match else ("I", tag)
        if entity_type:
            converted.append(f"{_AS_BIOES.get(letter, letter)}-{entity_type}")
        else:
            converted.append(letter)
    return converted
