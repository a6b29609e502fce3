"""Token classification (named entity recognition): BIO tags on the first token of each word."""

from __future__ import annotations

import numpy as np

from official.xlnet.data.examples import TaggedExample
from official.xlnet.errors import DataError
from official.xlnet.tasks.batching import Unit
from official.xlnet.tasks.labels import complete_labels, label_index
from official.xlnet.tasks.task import Task, register_task
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
        from sklearn import metrics

        labels = list(self.labels)
        matrix = metrics.confusion_matrix(
            [tag for example in examples for tag in example.tags],
            [tag for prediction in predictions for tag in prediction["tags"]],
            labels=labels,
        )
        display = metrics.ConfusionMatrixDisplay(matrix, display_labels=labels)
        display.plot(ax=axes, cmap="Blues", colorbar=False, xticks_rotation="vertical")
        axes.set_title("Confusion matrix of tags")
