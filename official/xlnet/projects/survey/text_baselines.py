"""Baselines of a text task: a linear model on a bag of words, and the most frequent label.

They take seconds, and say whether a network is worth its cost. Both give what a head would give,
so that predictions and metrics are the task's own. The bag of words is TF-IDF of words and word
pairs, of each text column by itself, under logistic regression or, for numbers, ridge regression.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
import pandas as pd

from official.xlnet.configs.registry import BASELINES
from official.xlnet.data.examples import TextExample
from official.xlnet.tasks.task import Task, metrics_of
from official.xlnet.tasks.text_task import TextTask
from official.xlnet.tokenization.unspaced_scripts import CHARACTERS

# The part of a large data set that is read, for fitting and for evaluation each.
MAX_EXAMPLES = 20_000
MAX_CHARACTERS = 20_000_000

_MAX_FEATURES = 100_000  # Features of a text column.
_MAX_ITERATIONS = 200
_INVERSE_PENALTY = 10.0
_RARE_LOGIT = -30.0  # Logit of a class without fitted examples.
# Words, single punctuation marks, and single characters of scripts without spaces between words.
_WORD = rf"[{CHARACTERS}]|[^\W{CHARACTERS}]+|[^\w\s]"

Logits = dict[str, np.ndarray]


@BASELINES.register("text")
def text_baselines(
    task: Task,
    train: Sequence[Any],
    dev: Sequence[Any],
    max_examples: int = MAX_EXAMPLES,
    max_characters: int = MAX_CHARACTERS,
) -> dict[str, Any] | None:
    """Fits the baselines of a text task and evaluates them with the task's own metrics.

    Args:
      task: the task, with complete labels.
      train: training examples, `TextExample`.
      dev: examples to evaluate on, with labels.
      max_examples: number of examples of each that are used; a random sample of more.
      max_characters: number of characters of each that are read.

    Returns:
      Metrics as `bag_of_words` and `majority` (the most frequent class, or the mean of numbers);
      and `train_examples` and `dev_examples`, how many were used. None for a task that does not
      label texts, or has rankings, too.
    """
    parts = task.parts.values() or [task]
    if not all(part.text_label for part in parts):
        return None
    if not all(isinstance(example, TextExample) for example in (*train, *dev)):
        return None
    train, dev = (_sample(examples, max_examples, max_characters) for examples in (train, dev))
    logits = _logits_of_parts(task, train, dev)
    results: dict[str, Any] = {}
    for name, outputs in logits.items():
        predictions = [task.predict(e, [o]) for e, o in zip(dev, outputs, strict=True)]
        results[name] = metrics_of(task, dev, predictions)
    return results | {"train_examples": len(train), "dev_examples": len(dev)}


def _sample(examples, max_examples, max_characters):
    """A random sample within both limits, in the order of the data."""
    order = np.random.default_rng(0).permutation(len(examples))[:max_examples]
    characters = np.cumsum([sum(map(len, examples[index].texts)) for index in order])
    num_examples = max(1, np.searchsorted(characters, max_characters, side="right"))
    return [examples[index] for index in sorted(order[:num_examples])]


def _logits_of_parts(task, train, dev) -> dict[str, list[Logits]]:
    """Outputs of a head for each example of dev, by baseline."""
    if not task.parts:
        logits = _logits(task, train, dev)
        return {name: [{"logits": row} for row in rows] for name, rows in logits.items()}
    outputs: dict[str, list[Logits]] = {
        "bag_of_words": [{}] * len(dev),
        "majority": [{}] * len(dev),
    }
    for subtask, part in task.parts.items():
        indices = [index for index, example in enumerate(dev) if example.subtask == subtask]
        if indices:
            logits = _logits(
                cast(TextTask, part),
                [example for example in train if example.subtask == subtask],
                [dev[index] for index in indices],
            )
            for name, rows in logits.items():
                for index, row in zip(indices, rows, strict=True):
                    outputs[name][index] = {subtask: row}
    return outputs


def _logits(task: TextTask, train, dev) -> dict[str, np.ndarray]:
    """Logits of each baseline, [E, C], for the examples of dev."""
    from sklearn import dummy, linear_model, multiclass

    label = np.array([task.label(example) for example in train])
    inputs = _bags_of_words(train, dev)
    linear = linear_model.LogisticRegression(C=_INVERSE_PENALTY, max_iter=_MAX_ITERATIONS)
    majority = dummy.DummyClassifier(strategy="prior")
    fit: Callable = _class_logits
    if task.text_label == "number":
        linear, majority, fit = linear_model.Ridge(), dummy.DummyRegressor(), _numbers
    elif task.text_label == "classes":
        linear, majority = (multiclass.OneVsRestClassifier(m) for m in (linear, majority))
        fit = _label_logits
    num_classes = len(task.labels)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # On convergence, and labels that all examples have.
        return {
            "bag_of_words": fit(linear, *inputs, label, num_classes),
            "majority": fit(majority, *inputs, label, num_classes),
        }


def _bags_of_words(train, dev):
    """TF-IDF of both, sparse [E, features]; the columns of texts side by side."""
    from sklearn.compose import ColumnTransformer
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts, dev_texts = (
        pd.DataFrame([example.texts for example in examples]) for examples in (train, dev)
    )
    words = TfidfVectorizer(
        ngram_range=(1, 2), sublinear_tf=True, token_pattern=_WORD, max_features=_MAX_FEATURES
    )
    columns = [(str(column), words, column) for column in texts]
    bags = ColumnTransformer(columns, sparse_threshold=1.0)
    dev_texts = dev_texts.reindex(columns=texts.columns)
    return bags.fit_transform(texts.fillna("")), bags.transform(dev_texts.fillna(""))


def _class_logits(model, inputs, dev_inputs, label, num_classes):
    """Log probabilities of classes."""
    model.fit(inputs, label)
    logits = np.full((dev_inputs.shape[0], num_classes), _RARE_LOGIT)
    probability = model.predict_proba(dev_inputs)
    logits[:, model.classes_] = np.maximum(np.log(np.maximum(probability, 1e-30)), _RARE_LOGIT)
    return logits


def _label_logits(model, inputs, dev_inputs, label, num_classes):
    """Log odds of labels that may occur together."""
    probability = np.clip(model.fit(inputs, label).predict_proba(dev_inputs), 1e-12, 1 - 1e-12)
    return np.log(probability) - np.log1p(-probability)


def _numbers(model, inputs, dev_inputs, label, num_classes):
    return model.fit(inputs, label).predict(dev_inputs)[:, None]
