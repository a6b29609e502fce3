"""Text classification: one class for each text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from official.xlnet.data.examples import TextExample
from official.xlnet.tasks.classification import ClassificationConfig
from official.xlnet.tasks.labels import (
    check_hidden,
    combined,
    complete_labels,
    error_of_class,
    label_index,
    rounded,
    softmax,
)
from official.xlnet.tasks.reports import (
    calibration_error,
    class_details,
    draw_confusion,
)
from official.xlnet.tasks.task import Prediction, register_task
from official.xlnet.tasks.text_task import TextTask


@register_task("classification")
class Classification(TextTask):
    """Single-label classification into C classes."""

    text_label = "class"
    metrics = ("accuracy", "macro_f1", "matthews", "f1")
    typical = tuple(
        TextExample(f"{start} {word}", (f"{start} a {word} film .",), label)
        for start in ("This is", "We saw", "It was")
        for label, words in (("bad", ("dull", "poor")), ("good", ("fine", "great")))
        for word in words
    )

    @classmethod
    def complete_settings(cls, config, examples):
        labels = {str(example.label) for example in examples if example.label is not None}
        if not config.task.labels:
            check_hidden(labels)
        config.task.labels = complete_labels(config, labels)

    def label(self, example):
        return np.int32(label_index(self.labels, example.label, f"example {example.id}"))

    def weigh(self, units):
        if self.config.task.settings(ClassificationConfig).class_weights == "balanced":
            classes = np.array([unit.labels["label"] for unit in units])
            counts = np.bincount(classes, minlength=len(self.labels))
            for unit in units:
                present = np.count_nonzero(counts)
                unit.weight = len(units) / (present * counts[unit.labels["label"]])

    def predict(self, example, outputs):
        return {"id": example.id, **self._prediction(softmax(outputs[0]["logits"]))}

    def combine(self, predictions):
        """Averages log-probabilities."""
        table_MC = [[p["probabilities"][label] for label in self.labels] for p in predictions]
        return predictions[0] | self._prediction(combined(table_MC))

    def _prediction(self, probability_C):
        return {
            "label": self.labels[int(np.argmax(probability_C))],
            "probabilities": dict(zip(self.labels, rounded(probability_C), strict=True)),
        }

    def evaluate(self, examples, predictions):
        from sklearn import metrics

        true, predicted = _true_and_predicted(self.labels, examples, predictions)
        labels = list(self.labels)
        results = {
            "accuracy": float(metrics.accuracy_score(true, predicted)),
            "macro_f1": float(metrics.f1_score(true, predicted, average="macro", zero_division=0)),
            "matthews": float(metrics.matthews_corrcoef(true, predicted)),
        }
        if len(labels) == 2:
            positive = labels[1]
            results["f1"] = float(
                metrics.f1_score(true, predicted, pos_label=positive, zero_division=0)
            )
        return results

    def means_over(self, examples, predictions):
        true, predicted = _true_and_predicted(self.labels, examples, predictions)
        return classes_of_mean(len({*true, *predicted}), self.labels)

    @property
    def positive_class(self):
        return self.labels[1] if len(self.labels) == 2 else None

    def details(self, examples, predictions):
        from sklearn import metrics

        labels = list(self.labels)
        true, predicted = _true_and_predicted(labels, examples, predictions)
        confidence = [p["probabilities"][p["label"]] for p in predictions]
        is_right = [a == b for a, b in zip(true, predicted, strict=True)]
        matrix = metrics.confusion_matrix(true, predicted, labels=labels)
        details = {
            "classes": class_details(labels, true, predicted),
            "confusion_matrix": {"true_by_predicted": matrix.tolist(), "labels": labels},
            "calibration_error": calibration_error(confidence, is_right),
        }
        if self.positive_class is not None:
            details["f1_is_of"] = self.positive_class
        return details

    def error_and_probability(self, example, prediction):
        expected = self.labels[label_index(self.labels, example.label, f"example {example.id}")]
        return error_of_class(prediction["probabilities"], expected, prediction["label"])

    def draw(self, axes, examples, predictions):
        """Plots the confusion matrix."""
        true, predicted = _true_and_predicted(self.labels, examples, predictions)
        draw_confusion(axes, list(self.labels), true, predicted)


def classes_of_mean(num_classes: int, labels: Sequence[str]) -> dict[str, str]:
    """Returns which classes `macro_f1` is the mean over, if some occur in no label or prediction.

    Args:
      num_classes: number of classes that occur.
      labels: all classes.
    """
    if num_classes == len(labels):
        return {}
    return {"macro_f1": f"{num_classes} of {len(labels)} classes"}


def _true_and_predicted(
    labels: Sequence[str], examples: Sequence[TextExample], predictions: Sequence[Prediction]
) -> tuple[list[str], list[str]]:
    true = [
        labels[label_index(labels, example.label, f"example {example.id}")] for example in examples
    ]
    predicted = [prediction["label"] for prediction in predictions]
    return true, predicted
