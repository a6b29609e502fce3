"""Baselines of text tasks: their metrics are the task's own."""

import collections
import dataclasses
import random
import types

import numpy as np
import pytest

from official.xlnet.configs.registry import TASKS
from official.xlnet.data.examples import TextExample
from official.xlnet.projects.survey.text_baselines import text_baselines
from official.xlnet.tasks.ranking import RankingExample
from tests.helpers.task_corpora import labelled, task_config

# Baselines use no more of a tokenizer than its counts.
TOKENIZER = types.SimpleNamespace(counts=collections.Counter())


def task_of(name, train, **settings):
    config = task_config(name=name, **settings)
    kind = TASKS[name]
    kind.complete_settings(config, train)
    return kind(config, TOKENIZER)


def examples_of(rows):
    return [TextExample(str(n), (text,), label) for n, (label, text) in enumerate(rows)]


def test_classification_also_of_a_sample():
    train = examples_of(labelled(random.Random(0), 150) + [("bad", "the time")] * 50)
    dev = examples_of(labelled(random.Random(1), 41))
    task = task_of("classification", train)
    found = text_baselines(task, train, dev)
    assert found["bag_of_words"]["accuracy"] > 0.9
    right = sum(example.label == "bad" for example in dev)
    assert found["majority"]["accuracy"] == pytest.approx(right / 41)
    assert found["majority"]["matthews"] == 0
    assert (found["train_examples"], found["dev_examples"]) == (200, 41)
    found = text_baselines(task, train, dev, max_examples=23)
    assert (found["train_examples"], found["dev_examples"]) == (23, 23)
    found = text_baselines(task, train, dev, max_characters=1000)
    assert 10 < found["train_examples"] < 100 and 0 < found["dev_examples"] < 41
    assert found == text_baselines(task, train, dev, max_characters=1000)


def test_a_multi_task_model_with_rankings_has_none():
    """Their metrics would be in its mean, but not in that of the baselines."""
    rows = examples_of(labelled(random.Random(0), 40))
    texts = [dataclasses.replace(row, subtask="tone") for row in rows]
    ranked = [RankingExample(x, "q", "q", x, float(x == "a"), subtask="ranked") for x in "ab"]
    task = task_of("multitask", texts, subtasks=("tone",))
    assert text_baselines(task, texts, texts)["bag_of_words"]["mean"] > 0.9
    settings = {"subtasks": ("tone", "ranked"), "rankings": ("ranked",)}
    task = task_of("multitask", [*texts, *ranked], **settings)
    assert text_baselines(task, [*texts, *ranked], [*texts, *ranked]) is None


def test_regression():
    rng = random.Random(0)
    numbers = [rng.randint(0, 5) for _ in range(260)]
    rows = [(n + 0.5, " ".join(["good"] * n + ["bad"] * (5 - n))) for n in numbers]
    train, dev = examples_of(rows[:200]), examples_of(rows[200:])
    found = text_baselines(task_of("regression", train), train, dev)
    assert found["bag_of_words"]["pearson"] > 0.9
    labels = np.array(numbers) + 0.5
    error = np.mean((labels[200:] - labels[:200].mean()) ** 2)
    assert found["majority"]["mean_squared_error"] == pytest.approx(error)
    assert found["majority"]["pearson"] is None


def test_multi_label():
    words, draw = {"a": "water", "b": "time", "c": "made"}, random.Random(0)
    labels = [
        tuple(x for x in "abc" if draw.random() < (0.8 if x == "a" else 0.3)) for _ in range(300)
    ]
    rows = [(each, " ".join([*map(words.get, each), "the"])) for each in labels]
    train, dev = examples_of(rows[:230]), examples_of(rows[230:])
    found = text_baselines(task_of("multi_label", train), train, dev)
    assert found["bag_of_words"]["micro_f1"] > 0.99
    # The majority: label a for every example.
    true, number = sum("a" in each for each in labels[230:]), sum(map(len, labels[230:]))
    assert found["majority"]["micro_f1"] == pytest.approx(2 * true / (70 + number))
