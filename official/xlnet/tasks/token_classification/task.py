"""Token classification (named entity recognition): BIO tags on the first token of each word."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable

import numpy as np

from official.xlnet.checkpoints.convert.head_format import HeadFormat, dense
from official.xlnet.configs.registry import FORMATS
from official.xlnet.errors import DataError, require_data
from official.xlnet.tasks.batching import Unit
from official.xlnet.tasks.labels import complete_labels, label_index, meaning, rounded, softmax
from official.xlnet.tasks.reports import draw_confusion
from official.xlnet.tasks.task import Task, register_task
from official.xlnet.tasks.token_classification import TaggedExample
from official.xlnet.tasks.token_classification.windows import MARKS, windows_of
from official.xlnet.tokenization.graph.ragged import rows_of

_OUTSIDE = "O"
_SCHEME = re.compile(r"([BIESLUM])(?:[-_](.*))?", re.DOTALL)
_LETTERS = {*"OBIESLUM"}
_AS_BIOES = {"L": "E", "U": "S", "M": "I"}  # BILOU and BMES in the letters of BIOES.
_NO_TAG = -1  # Label of tokens that the loss ignores.


@register_task("token_classification")
class TokenClassification(Task):
    """Tagging of words, such as named entity recognition.

    A sentence of more than `max_length` tokens is split into several units, between words.
    """

    metric = "f1"
    metrics = ("precision", "recall", "f1", "word_accuracy")
    typical = tuple(
        TaggedExample(
            f"{who} {place}",
            (*who.split(), "lives", "in", place),
            ("B-PER", "I-PER", "I-PER")[: len(who.split())] + ("O", "O", "B-LOC"),
        )
        for who in ("Ann", "Ann Lee", "Bob Lee")
        for place in ("Paris", "Rome", "Ghana")
    )

    @classmethod
    def complete(cls, config, examples):
        tags = (tag for example in examples for tag in example.tags or ())
        labels = complete_labels(config, tags)
        require_data(
            bool(config.task.labels) or not all(map(str.isdecimal, labels)),
            "training data",
            "names of tags, such as B-PER and O",
            f"the numbers {', '.join(labels[:10])}; list their names in task.labels, that of 0 "
            "first, and set task.label_type=int",
        )
        config.task.labels = labels

    def read(self, examples):
        length, labels = self.config.task.max_length, self.labels
        require_data(length >= MARKS + 1, "task.max_length", f"at least {MARKS + 1}", length)
        words = [word for example in examples for word in example.words]
        tags = [
            _NO_TAG if example.tags is None else label_index(labels, example.tags[n], example.id)
            for example in examples
            for n in range(len(example.words))
        ]
        words_B = np.array([len(example.words) for example in examples], np.int64)
        windows = windows_of(self.tokens(words), words_B, length)
        numbers, size_U = windows.number_B.numpy(), windows.size_U.numpy()
        self.counts["split"] += int(np.count_nonzero(numbers > 1))
        words_U = np.bincount(windows.window_N, minlength=len(size_U))
        ends = np.cumsum(words_U)
        sequences = rows_of(windows.features)
        units: list[list[Unit]] = [[] for _ in examples]
        place_N, tag_N = windows.place_N.numpy(), np.array(tags, np.int32)
        for u, n in enumerate(np.repeat(np.arange(len(examples)), numbers)):
            own = slice(ends[u] - words_U[u], ends[u])
            if examples[n].tags is not None:
                sequences[u]["tags"] = np.full(size_U[u] + MARKS, _NO_TAG, np.int32)
                sequences[u]["tags"][place_N[own]] = tag_N[own]
            # Counted from the right end of the input.
            places = {"first": place_N[own] - size_U[u] - MARKS}
            units[n].append(Unit([sequences[u]], {}, places=places))
        return units

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
        """Computes entity-level precision, recall and F1 (seqeval), and word accuracy."""
        from seqeval import metrics

        if not any(tag != _OUTSIDE for example in examples for tag in example.tags):
            raise DataError("expected entities in the evaluation data, got none")
        words, (true, predicted) = self._tags(examples, predictions)
        return {
            "precision": float(metrics.precision_score(true, predicted, zero_division=0)),
            "recall": float(metrics.recall_score(true, predicted, zero_division=0)),
            "f1": float(metrics.f1_score(true, predicted, zero_division=0)),
            "word_accuracy": float(metrics.accuracy_score(*words)),
        }

    def details(self, examples, predictions):
        from seqeval import metrics

        _, (true, predicted) = self._tags(examples, predictions)
        found = metrics.classification_report(true, predicted, output_dict=True, zero_division=0)
        kinds = {kind: values for kind, values in found.items() if not kind.endswith(" avg")}
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


def entity_tags(tags: Iterable[str], only_letters: bool = False) -> list[str]:
    """Tags in the letters of BIOES, which seqeval reads; a tag without a letter continues its run.

    Args:
      tags: the tags of a sentence.
      only_letters: whether all tags of the data are letters alone, without kinds of entities.

    Example:
      >>> entity_tags(["U-PER", "B-ORG", "L-ORG", "ORG", "ORG", "O"])
      ['S-PER', 'B-ORG', 'E-ORG', 'I-ORG', 'I-ORG', 'O']
    """
    found = []
    for tag in tags:
        match = _SCHEME.fullmatch(f"{tag}-entity" if only_letters else tag)
        letter, kind = match.groups() if match else ("I", tag)
        known = f"{_AS_BIOES.get(letter, letter)}-{kind}" if kind else letter
        found.append(tag if tag == _OUTSIDE else known)
    return found


FORMATS["token_classification"] = HeadFormat(  # The TF1 release has no such head.
    rows=dense("head/logits", "DC", None, "classifier"), architecture="XLNetForTokenClassification"
)
