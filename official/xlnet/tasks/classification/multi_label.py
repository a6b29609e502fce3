"""Multi-label classification: any number of classes for each text."""

from __future__ import annotations

import collections

import numpy as np

from official.xlnet.data.examples import TextExample
from official.xlnet.errors import require_data
from official.xlnet.tasks.classification.task import classes_of_mean
from official.xlnet.tasks.labels import LEAST_PROBABILITY, complete_labels, label_index, rounded
from official.xlnet.tasks.reports import class_details
from official.xlnet.tasks.task import one_hot, register_task
from official.xlnet.tasks.text_task import TextTask


@register_task("multi_label")
class MultiLabel(TextTask):
    """Multi-label classification: each class with a probability above 0.5 is predicted."""

    text_label = "classes"
    metric = "micro_f1"
    metrics = ("micro_f1", "macro_f1", "exact_match")
    typical = tuple(
        TextExample(f"{who} {what}", (f"{who} wrote about {what} .",), labels)
        for who in ("Ann", "Bob", "They")
        for what, labels in (
            ("a game", ("sport",)),
            ("the bank", ("money",)),
            ("a game and the bank", ("money", "sport")),
            ("a song", ()),
        )
    )

    @classmethod
    def complete_settings(cls, config, examples):
        labels = {label for example in examples for label in example.label or ()}
        if not config.task.labels:
            _check_separated(labels)
        config.task.labels = complete_labels(config, labels)

    def label(self, example):
        indices = [
            label_index(self.labels, label, f"example {example.id}") for label in example.label
        ]
        return one_hot(indices, len(self.labels))

    def predict(self, example, outputs):
        logits_C = np.clip(outputs[0]["logits"], -60, 60).astype(np.float64)
        return {"id": example.id, **self._prediction(logits_C)}

    def combine(self, predictions):
        """Averages log odds."""
        table_MC = [[p["probabilities"][label] for label in self.labels] for p in predictions]
        table_MC = np.clip(table_MC, LEAST_PROBABILITY, 1 - LEAST_PROBABILITY)
        logits_C = np.mean(np.log(table_MC) - np.log1p(-table_MC), axis=0)
        return predictions[0] | self._prediction(logits_C)

    def _prediction(self, logits_C):
        probability_C = 1 / (1 + np.exp(-logits_C))
        labels = [x for x, p in zip(self.labels, probability_C, strict=True) if p > 0.5]
        probabilities = dict(zip(self.labels, rounded(probability_C), strict=True))
        return {"labels": labels, "probabilities": probabilities}

    def evaluate(self, examples, predictions):
        from sklearn import metrics

        true_EC, probability_EC = self._tables(examples, predictions)
        predicted_EC = probability_EC > 0.5
        macro_f1 = metrics.f1_score(true_EC, predicted_EC, average="macro", zero_division=np.nan)
        return {
            "micro_f1": float(
                metrics.f1_score(true_EC, predicted_EC, average="micro", zero_division=0)
            ),
            "macro_f1": None if np.isnan(macro_f1) else float(macro_f1),
            "exact_match": float(metrics.accuracy_score(true_EC, predicted_EC)),
        }

    def means_over(self, examples, predictions):
        true_EC, probability_EC = self._tables(examples, predictions)
        occurs_C = np.any((true_EC > 0) | (probability_EC > 0.5), axis=0)
        return classes_of_mean(int(np.count_nonzero(occurs_C)), self.labels)

    def details(self, examples, predictions):
        true_EC, probability_EC = self._tables(examples, predictions)
        return {"classes": class_details(self.labels, true_EC, (probability_EC > 0.5).astype(int))}

    def error_and_probability(self, example, prediction):
        (true_C,), (probability_C,) = self._tables([example], [prediction])
        is_wrong_C = (true_C > 0) != (probability_C > 0.5)
        return np.max(np.abs(true_C - probability_C) * is_wrong_C), np.nan

    def draw(self, axes, examples, predictions):
        """Plots the precision-recall curve, micro-averaged over classes."""
        from sklearn import metrics

        true_EC, probability_EC = self._tables(examples, predictions)
        precision, recall, _ = metrics.precision_recall_curve(
            true_EC.ravel(), probability_EC.ravel()
        )
        axes.plot(recall, precision)
        axes.set(xlabel="recall", ylabel="precision", title="Precision and recall")

    def _tables(self, examples, predictions):
        """Labels and probabilities, [E, C]."""
        true_EC = np.array([self.label(example) for example in examples])
        probability_EC = [[p["probabilities"][label] for label in self.labels] for p in predictions]
        return true_EC.astype(int), np.array(probability_EC)


def _check_separated(labels: set[str]) -> None:
    """Raises `DataError` if several classes were read as one, as another character separates them.

    A label is taken for several classes if each of its parts is a label of its own, or, between
    vertical bars or semicolons, is in another label as well.
    """
    for separator in "|; ":
        parts_of_labels = {}
        num_labels_with: collections.Counter[str] = collections.Counter()
        for label in labels:
            parts = [part.strip() for part in label.split(separator)]
            parts_of_labels[label] = parts
            num_labels_with.update(parts)
        for label, parts in parts_of_labels.items():
            is_shared = separator != " " and all(num_labels_with[part] > 1 for part in parts)
            is_several = len(parts) > 1 and (is_shared or labels.issuperset(parts))
            require_data(
                not is_several,
                "training data",
                "classes separated by commas",
                f"the class {label!r}; set task.label_separator to {separator!r}, or list all "
                "classes in task.labels",
            )
