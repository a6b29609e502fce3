"""Ensembles: the predictions of several models for one example become one prediction.

Models may differ in everything but their task and its labels: their predictions are averaged, not
tensors.
"""

from __future__ import annotations

import collections
import math
from collections.abc import Callable, Sequence

import numpy as np

from official.xlnet.configs.task import TaskConfig
from official.xlnet.errors import ConfigError
from official.xlnet.tasks.labels import softmax
from official.xlnet.tasks.task import Prediction

_LEAST_PROBABILITY = 1e-6  # As predictions are rounded; no model can veto a class.

# Combines the predictions of M models, in the form that the task's own `predict` returns.
Combine = Callable[[Sequence[Prediction], TaskConfig], Prediction]


def combine(predictions: Sequence[Prediction], task: TaskConfig) -> Prediction:
    """Combines the predictions of several models for one example.

    Classification and multiple choice average log-probabilities, multi-label classification log
    odds, regression and ranking scores, and question answering the probabilities of answer spans
    and the log odds that there is none.

    Args:
      predictions: one of each model.
      task: the task section of the configuration.

    Raises:
      ConfigError: the task has no way to combine predictions.

    Example:
      >>> members = [{"id": "1", "score": 1.0}, {"id": "1", "score": 2.0}]
      >>> combine(members, TaskConfig(name="regression"))
      {'id': '1', 'score': 1.5}
    """
    if task.name == "multitask":
        kind = "regression" if "score" in predictions[0] else "classification"
        return _COMBINE[kind](predictions, task)
    return combination_of(task.name)(predictions, task)


def combination_of(name: str) -> Combine:
    """How the predictions of a task are combined.

    Args:
      name: the name of the task.

    Raises:
      ConfigError: they cannot be.
    """
    if name not in _COMBINE:
        raise ConfigError(
            f"task.name: expected one of {', '.join(_COMBINE)} for several models, got {name}"
        )
    return _COMBINE[name]


def _classification(predictions: Sequence[Prediction], task: TaskConfig) -> Prediction:
    labels = list(predictions[0]["probabilities"])
    table_MC = [[p["probabilities"][label] for label in labels] for p in predictions]
    probability_C = _geometric_mean(table_MC)
    return {
        **predictions[0],
        "label": labels[int(np.argmax(probability_C))],
        "probabilities": dict(zip(labels, _rounded(probability_C), strict=True)),
    }


def _multiple_choice(predictions: Sequence[Prediction], task: TaskConfig) -> Prediction:
    probability_S = _geometric_mean([p["probabilities"] for p in predictions])
    return {
        **predictions[0],
        "choice": int(np.argmax(probability_S)),
        "probabilities": _rounded(probability_S),
    }


def _multi_label(predictions: Sequence[Prediction], task: TaskConfig) -> Prediction:
    labels = list(predictions[0]["probabilities"])
    table_MC = np.array([[p["probabilities"][label] for label in labels] for p in predictions])
    table_MC = np.clip(table_MC, _LEAST_PROBABILITY, 1 - _LEAST_PROBABILITY)
    probability_C = 1 / (1 + np.exp(-np.mean(np.log(table_MC) - np.log1p(-table_MC), axis=0)))
    pairs = list(zip(labels, probability_C, strict=True))
    return {
        **predictions[0],
        "labels": [label for label, p in pairs if p > 0.5],
        "probabilities": dict(zip(labels, _rounded(probability_C), strict=True)),
    }


def _score(predictions: Sequence[Prediction], task: TaskConfig) -> Prediction:
    return {**predictions[0], "score": float(np.mean([p["score"] for p in predictions]))}


def _question_answering(predictions: Sequence[Prediction], task: TaskConfig) -> Prediction:
    """A span that a model has not among its best counts with probability 0."""
    mass: dict[tuple[int, str], float] = collections.defaultdict(float)
    for prediction in predictions:
        for span in prediction["n_best"]:
            mass[span["start"], span["text"]] += math.exp(span["log_probability"])
    ranked = sorted(mass.items(), key=lambda item: (-item[1], item[0]))[: task.n_best]
    no_answer = float(np.mean([p["no_answer_score"] for p in predictions]))
    (start, text), _ = ranked[0] if ranked else ((None, ""), 0.0)
    is_null = not ranked or no_answer > task.null_threshold
    return {
        **predictions[0],
        "answer": "" if is_null else text,
        "start": None if is_null else start,
        "no_answer_score": round(no_answer, 6),
        "best_span": text,
        "n_best": [
            {
                "text": text,
                "start": start,
                "log_probability": round(math.log(total / len(predictions)), 6),
            }
            for (start, text), total in ranked
        ],
    }


_COMBINE: dict[str, Combine] = {
    "classification": _classification,
    "multi_label": _multi_label,
    "regression": _score,
    "multiple_choice": _multiple_choice,
    "ranking": _score,
    "question_answering": _question_answering,
}


def _geometric_mean(table_MC: Sequence[Sequence[float]]) -> np.ndarray:
    """Softmax of the mean of log-probabilities, float64 [C]."""
    return softmax(np.mean(np.log(np.maximum(table_MC, _LEAST_PROBABILITY)), axis=0))


def _rounded(probability_C: np.ndarray) -> list[float]:
    return [round(float(p), 6) for p in probability_C]
