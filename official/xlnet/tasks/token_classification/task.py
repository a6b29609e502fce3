"""Classes and numbers of words, on the first token of each, or of letters, on their tokens."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Sequence

import numpy as np

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.errors import require_data
from official.xlnet.files.schema import shown
from official.xlnet.tasks.batching import Unit
from official.xlnet.tasks.labels import (
    complete_labels,
    complete_target,
    label_index,
    meaning,
    rounded,
    softmax,
)
from official.xlnet.tasks.reports import (
    class_details,
    draw_confusion,
    draw_numbers,
    number_metrics,
)
from official.xlnet.tasks.task import NUMBER_METRICS, Task, register_task
from official.xlnet.tasks.token_classification import TagConfig, TaggedExample
from official.xlnet.tasks.token_classification.windows import (
    MARKS,
    WordWindows,
    letter_windows,
    windows_of,
)
from official.xlnet.tokenization.graph.ragged import ragged, rows_of

_OUTSIDE = "O"
_SCHEME = re.compile(r"([BIESLUM])(?:[-_](.*))?", re.DOTALL)
_LETTERS = {*"OBIESLUM"}
_AS_BIOES = {"L": "E", "U": "S", "M": "I"}  # BILOU and BMES in the letters of BIOES.
_NO_TAG = -1  # Label of tokens that the loss ignores.


@register_task("token_classification")
class TokenClassification(Task):
    """Tagging of words, such as named entity recognition, or of the letters of a sequence.

    A sentence of more than `max_length` tokens is split into several units, between words; a
    sequence, between tokens.
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
        return "matthews" if self._has_letters else "f1"

    @property
    def _has_letters(self) -> bool:
        return self.config.task.settings(TagConfig).label_unit == "letter"

    @classmethod
    def complete(cls, config, examples):
        cls._check_units(config, examples)
        tags = (tag for example in examples for tag in example.tags or ())
        labels = complete_labels(config, tags)
        require_data(
            bool(config.task.labels)
            or config.task.settings(TagConfig).label_unit == "letter"
            or not all(map(str.isdecimal, labels)),
            "training data",
            "names of tags, such as B-PER and O",
            f"the numbers {', '.join(labels[:10])}; list their names in task.labels, that of 0 "
            "first, and set task.label_type=int",
        )
        config.task.labels = labels

    @staticmethod
    def _check_units(config: XLNetConfig, examples: Sequence[TaggedExample]) -> None:
        """Raises `DataError` if examples are not of the unit that the settings name."""
        unit = config.task.settings(TagConfig).label_unit
        for example in examples:
            labeled = "word" if example.separator else "letter"
            expected = f"labels of {unit}s, as in the other data or task.label_unit"
            require_data(labeled == unit, example.id, expected, f"labels of {labeled}s")

    def read(self, examples):
        length = self.config.task.max_length
        values = [self.values(example) for example in examples if example.tags is not None]
        words_B = np.array([len(example.words) for example in examples], np.int64)
        windows = self._windows(examples, words_B, length)
        number_B, size_U = windows.number_B.numpy(), windows.size_U.numpy()
        self.counts["split"] += int(np.count_nonzero(number_B > 1))
        words_U = np.bincount(windows.window_N, minlength=len(size_U))
        ends = np.cumsum(words_U)
        sequences = rows_of(windows.features)
        units: list[list[Unit]] = [[] for _ in examples]
        place_N = windows.place_N.numpy()
        value_N = iter(itertools.chain(*values))
        for u, n in enumerate(np.repeat(np.arange(len(examples)), number_B)):
            places = place_N[ends[u] - words_U[u] : ends[u]]
            size = size_U[u] + MARKS
            if examples[n].tags is not None:
                in_window = np.array([*itertools.islice(value_N, len(places))])
                sequences[u] |= self.targets(in_window, places, size)
            # Counted from the right end of the input.
            units[n].append(Unit([sequences[u]], {}, places={"first": places - size}))
        return units

    def _windows(self, examples: Sequence[TaggedExample], words_B, length: int) -> WordWindows:
        if not self._has_letters:
            words = [word for example in examples for word in example.words]
            return windows_of(self.tokens(words), words_B, length)
        encoded = [self.tokenizer.encode_with_offsets("".join(x.words)) for x in examples]
        starts = ragged([[start for start, _ in spans] for _, spans in encoded])
        return letter_windows(ragged([ids for ids, _ in encoded]), starts, words_B, length)

    def values(self, example: TaggedExample) -> list[float]:
        """Returns the labels of an example as numbers: indices of classes."""
        tags, words = example.tags or (), example.words
        expected = f"a tag for each of {len(words)} words or letters"
        require_data(len(tags) == len(words), example.id, expected, len(tags))
        return [label_index(self.labels, tag, example.id) for tag in tags]

    def targets(self, values: np.ndarray, places: np.ndarray, size: int) -> dict[str, np.ndarray]:
        """Returns what the loss of a window needs, by name.

        Args:
          values: labels of its words as numbers.
          places: the token of each word. Only letters can share one.
          size: number of tokens, T.
        """
        if self._has_letters:
            counts = np.zeros((size, len(self.labels)), np.float32)
            np.add.at(counts, (places, values.astype(int)), 1)
            return {"tag_counts": counts}
        tags = np.full(size, _NO_TAG, np.int32)
        tags[places] = values
        return {"tags": tags}

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
        """Computes entity-level precision, recall and F1 (seqeval), and word accuracy.

        Of letters, computes accuracy and Matthews correlation (scikit-learn).
        """
        from seqeval import metrics
        from sklearn.metrics import accuracy_score, matthews_corrcoef

        if self._has_letters:
            letters = [[*itertools.chain(*x)] for x in self._tags(examples, predictions)[0]]
            return {
                "accuracy": float(accuracy_score(*letters)),
                "matthews": float(matthews_corrcoef(*letters)),
            }
        words, (true, predicted) = self._tags(examples, predictions)
        has_entities = {tag for tags in true for tag in tags} - {_OUTSIDE}
        scores = {
            "precision": metrics.precision_score,
            "recall": metrics.recall_score,
            "f1": metrics.f1_score,
        }
        return {
            **{
                name: float(score(true, predicted, zero_division=0)) if has_entities else None
                for name, score in scores.items()
            },
            "word_accuracy": float(metrics.accuracy_score(*words)),
        }

    def details(self, examples, predictions):
        from seqeval import metrics

        tags, (true, predicted) = self._tags(examples, predictions)
        if self._has_letters:
            letters = ([*itertools.chain(*x)] for x in tags)
            return {"classes": class_details(self.labels, *letters)}
        report = metrics.classification_report(true, predicted, output_dict=True, zero_division=0)
        kinds = {kind: values for kind, values in report.items() if not kind.endswith(" avg")}
        return {
            "entities": {
                kind: {
                    "precision": float(values["precision"]),
                    "recall": float(values["recall"]),
                    "f1": float(values["f1-score"]),
                    "support": int(values["support"]),
                }
                for kind, values in kinds.items()
            }
        }

    def judge(self, example, prediction):
        ((true,), (predicted,)), _ = self._tags([example], [prediction])
        return np.mean([a != b for a, b in zip(true, predicted, strict=True)]), np.nan

    def _tags(self, examples, predictions):
        """Tags of the examples and the predictions: as they are, and in the letters of BIOES."""
        known = {meaning(label): label for label in self.labels}
        true = [
            [tag if tag in self.labels else known.get(meaning(tag), tag) for tag in example.tags]
            for example in examples
        ]
        predicted = [prediction["tags"] for prediction in predictions]
        letters = {tag for tags in (*true, *predicted) for tag in tags} <= _LETTERS
        as_known = [[entity_tags(tags, letters) for tags in each] for each in (true, predicted)]
        return (true, predicted), as_known

    def draw(self, axes, examples, predictions):
        """Plots the confusion matrix of tags."""
        (true, predicted), _ = self._tags(examples, predictions)
        every = (list(itertools.chain(*tags)) for tags in (true, predicted))
        draw_confusion(axes, list(self.labels), *every)


@register_task("token_regression")
class TokenRegression(TokenClassification):
    """Numbers of words, such as reading times, or of the letters of a sequence."""

    metric = "pearson"
    metrics = NUMBER_METRICS
    typical = tuple(
        TaggedExample(f"{who} {what}", (who, "said", what), (float(who == "Ann"), 0.0, amount))
        for who in ("Ann", "Bob", "They")
        for amount, what in ((-1.0, "no"), (2.0, "yes"), (1.0, "maybe"))
    )

    @classmethod
    def complete(cls, config, examples):
        cls._check_units(config, examples)
        complete_target(config, [number for example in examples for number in example.tags or ()])

    def values(self, example):
        numbers = [x for x in example.tags or () if isinstance(x, float | int) and math.isfinite(x)]
        is_right = len(numbers) == len(example.words)
        require_data(is_right, example.id, "a number for each word or letter", shown(example.tags))
        return numbers

    def targets(self, values, places, size):
        number = np.bincount(places, minlength=size)
        mean = np.bincount(places, values, size) / np.maximum(number, 1)
        squares = np.bincount(places, np.square(values - mean[places]), size)
        return {"numbers": np.stack([number, mean, squares], axis=1).astype(np.float32)}

    def predict(self, example, outputs):
        scores = np.concatenate([output["logits"][output["first"], 0] for output in outputs])
        return {"id": example.id, "words": list(example.words), "scores": scores.tolist()}

    def evaluate(self, examples, predictions):
        return number_metrics(*self._numbers(examples, predictions))

    def details(self, examples, predictions):
        return {}

    def judge(self, example, prediction):
        true, predicted = self._numbers([example], [prediction])
        return np.mean(np.abs(np.subtract(true, predicted))), np.nan

    def draw(self, axes, examples, predictions):
        """Plots predictions against labels."""
        draw_numbers(axes, *self._numbers(examples, predictions))

    def _numbers(self, examples, predictions):
        values = [self.values(example) for example in examples], [p["scores"] for p in predictions]
        return tuple([*itertools.chain(*rows)] for rows in values)


def entity_tags(tags: Iterable[str], only_letters: bool = False) -> list[str]:
    """Tags in the letters of BIOES, which seqeval reads; a tag without a letter continues its run.

    Args:
      tags: the tags of a sentence.
      only_letters: whether all tags of the data are letters alone, without kinds of entities.

    Example:
      >>> entity_tags(["U-PER", "B-ORG", "L-ORG", "ORG", "ORG", "O"])
      ['S-PER', 'B-ORG', 'E-ORG', 'I-ORG', 'I-ORG', 'O']
    """
    read = []
    for tag in tags:
        match = _SCHEME.fullmatch(f"{tag}-entity" if only_letters else tag)
        letter, kind = match.groups() if match else ("I", tag)
        known = f"{_AS_BIOES.get(letter, letter)}-{kind}" if kind else letter
        read.append(tag if tag == _OUTSIDE else known)
    return read
