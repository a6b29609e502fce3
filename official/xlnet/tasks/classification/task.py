"""Text classification, multi-label classification and regression."""

from __future__ import annotations

import collections
from collections.abc import Sequence

import numpy as np

from official.xlnet.data.examples import TextExample
from official.xlnet.errors import require_data
from official.xlnet.tasks.classification import ClassificationConfig
from official.xlnet.tasks.labels import (
    LEAST_PROBABILITY,
    check_hidden,
    combined,
    complete_labels,
    complete_target,
    error_of_class,
    label_index,
    mean_score,
    rounded,
    softmax,
)
from official.xlnet.tasks.reports import (
    calibration_error,
    class_details,
    draw_confusion,
    draw_numbers,
    number_metrics,
)
from official.xlnet.tasks.task import NUMBER_METRICS, Prediction, one_hot, register_task
from official.xlnet.tasks.text_task import TextTask


@register_task("classification")
class Classification(TextTask):
    """Single-label classification into C classes."""

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
        return np.int32(label_index(self.labels, example.label, example.id))

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
        return _over(len({*true, *predicted}), self.labels)

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
        expected = self.labels[label_index(self.labels, example.label, example.id)]
        return error_of_class(prediction["probabilities"], expected, prediction["label"])

    def draw(self, axes, examples, predictions):
        """Plots the confusion matrix."""
        true, predicted = _true_and_predicted(self.labels, examples, predictions)
        draw_confusion(axes, list(self.labels), true, predicted)


@register_task("multi_label")
class MultiLabel(TextTask):
    """Multi-label classification: each class with a probability above 0.5 is predicted."""

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
        indices = [label_index(self.labels, label, example.id) for label in example.label]
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
        return _over(int(np.count_nonzero(occurs_C)), self.labels)

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


@register_task("regression")
class Regression(TextTask):
    """Regression: predicts one number, evaluated by correlation."""

    metric = "pearson"
    majority_name = "mean label"
    predicts_numbers = True
    metrics = NUMBER_METRICS
    typical = tuple(
        TextExample(f"{what} {word}", (f"{what} is {word} .",), float(rating))
        for what in ("The food", "The room", "The staff")
        for rating, word in enumerate(("awful", "poor", "fair", "good", "superb"))
    )

    @classmethod
    def complete_settings(cls, config, examples):
        complete_target(config, [example.label for example in examples])

    def label(self, example):
        return np.float32(example.label)

    def predict(self, example, outputs):
        return {"id": example.id, "score": float(outputs[0]["logits"][0])}

    def combine(self, predictions):
        return mean_score(predictions)

    def evaluate(self, examples, predictions):
        return number_metrics(*self._numbers(examples, predictions))

    def error_and_probability(self, example, prediction):
        return abs(float(example.label) - prediction["score"]), np.nan

    def draw(self, axes, examples, predictions):
        """Plots predictions against labels."""
        draw_numbers(axes, *self._numbers(examples, predictions))

    def _numbers(self, examples, predictions):
        true = [float(example.label) for example in examples]
        predicted = [prediction["score"] for prediction in predictions]
        return true, predicted


def _over(num_classes: int, labels: Sequence[str]) -> dict[str, str]:
    """The classes that `macro_f1` is the mean over, if some occur in no label or prediction."""
    if num_classes == len(labels):
        return {}
    return {"macro_f1": f"{num_classes} of {len(labels)} classes"}


def _true_and_predicted(
    labels: Sequence[str], examples: Sequence[TextExample], predictions: Sequence[Prediction]
) -> tuple[list[str], list[str]]:
    true = [labels[label_index(labels, example.label, example.id)] for example in examples]
    predicted = [prediction["label"] for prediction in predictions]
    return true, predicted
