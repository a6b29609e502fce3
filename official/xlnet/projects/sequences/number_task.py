"""Numbers of words, such as reading times, or of the letters of a sequence."""

from __future__ import annotations

import math

import numpy as np

from official.xlnet.errors import require_data
from official.xlnet.files.schema import shown
from official.xlnet.tasks.number_labels import complete_target, draw_numbers, number_metrics
from official.xlnet.tasks.task import NUMBER_METRICS, register_task
from official.xlnet.tasks.token_classification import TaggedExample
from official.xlnet.tasks.token_classification.task import TokenClassification


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
    def complete_settings(cls, config, examples):
        cls.check_units(config, examples)
        complete_target(config, [label for example in examples for label in example.tags or ()])

    def values(self, example):
        numbers = []
        for tag in example.tags or ():
            if isinstance(tag, float | int) and math.isfinite(tag):
                numbers.append(tag)
        require_data(
            len(numbers) == len(example.words),
            example.id,
            "a number for each word or letter",
            shown(example.tags),
        )
        return numbers

    def targets(self, values, places, size):
        counts = np.bincount(places, minlength=size)
        means = np.bincount(places, values, size) / np.maximum(counts, 1)
        squares = np.bincount(places, np.square(values - means[places]), size)
        return {"numbers": np.stack([counts, means, squares], axis=1).astype(np.float32)}

    def predict(self, example, outputs):
        scores = np.concatenate([output["logits"][output["first"], 0] for output in outputs])
        return {"id": example.id, "words": list(example.words), "scores": scores.tolist()}

    def evaluate(self, examples, predictions):
        return number_metrics(*self._numbers(examples, predictions))

    def details(self, examples, predictions):
        return {}

    def error_and_probability(self, example, prediction):
        true, predicted = self._numbers([example], [prediction])
        return np.mean(np.abs(np.subtract(true, predicted))), np.nan

    def draw(self, axes, examples, predictions):
        """Plots predictions against labels."""
        draw_numbers(axes, *self._numbers(examples, predictions))

    def _numbers(self, examples, predictions):
        true, predicted = [], []
        for example, prediction in zip(examples, predictions, strict=True):
            true += self.values(example)
            predicted += prediction["scores"]
        return true, predicted
