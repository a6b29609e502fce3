"""Baselines of text tasks: their metrics are the task's own."""

import collections
import random
import types

import numpy as np
import pytest

from official.xlnet.configs.registry import TASKS
from official.xlnet.data.examples import TextExample
from official.xlnet.extensions.text_baselines import text_baselines
from tests.helpers.task_corpora import labelled, task_config

# Baselines use no more of a tokenizer than its counts.
TOKENIZER = types.SimpleNamespace(counts=collections.Counter())


def task_of(name, train, **settings):
    config = task_config(name=name, **settings)
    kind = TASKS[name]
    kind.complete(config, train)
    return kind(config, TOKENIZER)


def examples_of(rows, subtask=""):
    return [
        TextExample(str(n), text if isinstance(text, tuple) else (text,), label, subtask)
        for n, (label, text) in enumerate(rows)
    ]


def test_classification():
    train = examples_of(labelled(random.Random(0), 150) + [("bad", "the time")] * 50)
    dev = examples_of(labelled(random.Random(1), 41))
    found = text_baselines(task_of("classification", train), train, dev)
    assert found["bag_of_words"]["accuracy"] > 0.9
    right = sum(example.label == "bad" for example in dev)
    assert found["majority"]["accuracy"] == pytest.approx(right / 41)
    assert found["majority"]["matthews"] == 0
    assert (found["train_examples"], found["dev_examples"]) == (200, 41)


def test_regression():
    rng = random.Random(0)
    rows = []
    for _ in range(260):
        number = rng.randint(0, 5)
        rows.append((number + 0.5, " ".join([*["good"] * number, *["bad"] * (5 - number)])))
    train, dev = examples_of(rows[:200]), examples_of(rows[200:])
    found = text_baselines(task_of("regression", train), train, dev)
    assert found["bag_of_words"]["pearson"] > 0.9
    mean = np.mean([example.label for example in train])
    error = np.mean([(example.label - mean) ** 2 for example in dev])
    assert found["majority"]["mean_squared_error"] == pytest.approx(error)
    assert found["majority"]["pearson"] == 0


def test_multi_label():
    rng = random.Random(0)
    rows = []
    for _ in range(300):
        labels = tuple(
            label for label in ("a", "b", "c") if rng.random() < {"a": 0.8}.get(label, 0.3)
        )
        words = [{"a": "water", "b": "time", "c": "made"}[label] for label in labels]
        rows.append((labels, " ".join([*words, "the"])))
    train, dev = examples_of(rows[:230]), examples_of(rows[230:])
    found = text_baselines(task_of("multi_label", train), train, dev)
    assert found["bag_of_words"]["micro_f1"] > 0.99
    # The majority: label a for every example.
    true = sum("a" in example.label for example in dev)
    all_labels = sum(len(example.label) for example in dev)
    assert found["majority"]["micro_f1"] == pytest.approx(2 * true / (len(dev) + all_labels))


def test_large_data_are_sampled():
    train = examples_of(labelled(random.Random(0), 211))
    dev = examples_of(labelled(random.Random(1), 101))
    task = task_of("classification", train)
    found = text_baselines(task, train, dev, max_examples=83)
    assert (found["train_examples"], found["dev_examples"]) == (83, 83)
    found = text_baselines(task, train, dev, max_characters=1000)
    assert 10 < found["train_examples"] < 100 and 0 < found["dev_examples"] < 100
    assert found == text_baselines(task, train, dev, max_characters=1000)
