"""Regression: a number for each text."""

from __future__ import annotations

import numpy as np

from official.xlnet.data.examples import TextExample
from official.xlnet.tasks.number_labels import (
    complete_target,
    draw_numbers,
    mean_score,
    number_metrics,
)
from official.xlnet.tasks.task import NUMBER_METRICS, register_task
from official.xlnet.tasks.text_task import TextTask


@register_task("regression")
class Regression(TextTask):
    """Regression: predicts one number, evaluated by correlation."""

    text_label = "number"
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
