"""Token classification (named entity recognition): BIO tags on the first token of each word."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from official.xlnet.errors import ArgumentTypeError, DataError
from official.xlnet.tasks.batching import Unit
from official.xlnet.tasks.labels import complete_labels, label_index
from official.xlnet.tasks.plain_rows import class_name, texts_of
from official.xlnet.tasks.reports import draw_confusion
from official.xlnet.tasks.task import Task, register_task
from official.xlnet.tasks.token_classification.examples import TaggedExample
from official.xlnet.tokenization.special_tokens import (
    CLS_ID,
    SEGMENT_A,
    SEGMENT_CLS,
    SEP_ID,
    UNK_ID,
)

_OUTSIDE = "O"
_NO_TAG = -1  # Label of tokens that the loss ignores.


@register_task("token_classification")
class TokenClassification(Task):
    """Tagging of words, such as named entity recognition.

    A sentence of more than `max_length` tokens is split into several units, between words.
    """

    metric = "f1"

    @classmethod
    def complete(cls, config, examples):
        found = sorted({tag for example in examples for tag in example.tags or ()})
        config.task.labels = complete_labels(config, found)

    @classmethod
    def labelled(cls, row, number):
        *parts, tags = row
        words = texts_of(parts[0], number)
        if len(parts) > 1 or isinstance(tags, str) or not isinstance(tags, Iterable):
            raise ArgumentTypeError(
                f"example {number}: expected (words, tags), two lists, got {(*parts, tags)!r:.60}"
            )
        tags = tuple(class_name(tag, number) for tag in tags)
        if len(tags) != len(words):
            raise DataError(
                f"example {number}: expected a tag for each of {len(words)} words, got {len(tags)}"
            )
        return TaggedExample(str(number), words, tags)

    @classmethod
    def unlabelled(cls, row, number):
        words = row.split() if isinstance(row, str) else row
        return TaggedExample(str(number), texts_of(words, number))

    def units(self, example):
        groups = self._groups(example)
        self.counts["split"] += len(groups) > 1
        return [self._unit(example, group) for group in groups]

    def _groups(self, example: TaggedExample) -> list[list[tuple[int, list[int]]]]:
        """Splits a sentence into units of words; each word is (its index, its token ids)."""
        room = self.config.task.max_length - 2
        if room < 1:
            raise DataError(f"task.max_length: expected at least 3, got {room + 2}")
        groups: list[list[tuple[int, list[int]]]] = [[]]
        used = 0
        for number, word in enumerate(example.words):
            # A word of which text cleaning leaves nothing becomes <unk>.
            pieces = self.tokenizer.encode(word)[:room] or [UNK_ID]
            if used + len(pieces) > room:
                groups.append([])
                used = 0
            groups[-1].append((number, pieces))
            used += len(pieces)
        return groups

    def _unit(self, example: TaggedExample, words: list[tuple[int, list[int]]]) -> Unit:
        ids, word_of = [], []
        for number, pieces in words:
            ids += pieces
            word_of += [number] + [_NO_TAG] * (len(pieces) - 1)
        sequence = {
            "token_ids": np.array([*ids, SEP_ID, CLS_ID], np.int32),
            "segment_ids": np.array([SEGMENT_A] * (len(ids) + 1) + [SEGMENT_CLS], np.int32),
        }
        if example.tags is not None:
            labels = self.labels
            tags = [
                _NO_TAG if word < 0 else label_index(labels, example.tags[word], example.id)
                for word in word_of
            ]
            sequence["tags"] = np.array([*tags, _NO_TAG, _NO_TAG], np.int32)
        return Unit([sequence], {})

    def predict(self, example, outputs):
        labels = self.labels
        tags = []
        for group, output in zip(self._groups(example), outputs, strict=True):
            place = len(output["logits"]) - 2 - sum(len(pieces) for _, pieces in group)
            for _, pieces in group:
                tags.append(labels[int(np.argmax(output["logits"][place]))])
                place += len(pieces)
        return {"id": example.id, "words": list(example.words), "tags": tags}

    def evaluate(self, examples, predictions):
        """Computes entity-level precision, recall and F1 (seqeval), and word accuracy."""
        from seqeval import metrics

        true = [list(example.tags) for example in examples]
        predicted = [prediction["tags"] for prediction in predictions]
        if not any(tag != _OUTSIDE for tags in true for tag in tags):
            raise DataError("expected entities in the evaluation data, got none")
        return {
            "precision": float(metrics.precision_score(true, predicted, zero_division=0)),
            "recall": float(metrics.recall_score(true, predicted, zero_division=0)),
            "f1": float(metrics.f1_score(true, predicted, zero_division=0)),
            "word_accuracy": float(metrics.accuracy_score(true, predicted)),
        }

    def draw(self, axes, examples, predictions):
        """Plots the confusion matrix of tags."""
        true = [tag for example in examples for tag in example.tags]
        predicted = [tag for prediction in predictions for tag in prediction["tags"]]
        draw_confusion(axes, list(self.labels), true, predicted)
