"""Baselines of text tasks: their metrics are the task's own."""

import collections
import random
import types

import numpy as np
import pytest

from official.xlnet.configs.registry import TASKS
from official.xlnet.data.examples import TextExample
from official.xlnet.extensions.text_baselines import text_baselines
from tests.helpers.task_corpora import labelled, sentence, task_config

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


def test_classes_that_only_the_configuration_has():
    rows = labelled(random.Random(0), 60)
    train, dev = examples_of(rows), examples_of(labelled(random.Random(1), 31))
    task = task_of("classification", train, labels=("other", "good", "bad"))
    found = text_baselines(task, train, [*dev, TextExample("x", ("made",), "other")])
    assert 0.8 < found["bag_of_words"]["accuracy"] < 1


def test_columns_of_texts_are_not_mixed():
    """The label says whether the word is in the first text or in the second one."""
    rng = random.Random(0)
    rows = []
    for n in range(220):
        texts = ("zebra", sentence(rng, 1, 2)) if n % 2 else (sentence(rng, 1, 2), "zebra")
        rows.append((str(n % 2), texts))
    examples = examples_of(rows)
    task = task_of("classification", examples)
    assert text_baselines(task, examples[:160], examples[160:])["bag_of_words"]["accuracy"] == 1


def test_scripts_without_spaces():
    rng = random.Random(0)
    rows = [
        (str(n % 2), "".join(rng.choices("的一是在不了有和人", k=5)) + ("好", "坏")[n % 2] + "天地")
        for n in range(120)
    ]
    examples = examples_of(rows)
    task = task_of("classification", examples)
    assert text_baselines(task, examples[:80], examples[80:])["bag_of_words"]["accuracy"] == 1


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


def test_several_data_sets():
    rng = random.Random(0)
    numbers = [(float(n % 3), "good " * (n % 3) + sentence(rng, 1, 1)) for n in range(90)]
    train = examples_of(labelled(rng, 120), "tone") + examples_of(numbers, "length")
    dev = examples_of(labelled(rng, 31), "tone") + examples_of(numbers[:17], "length")
    rng.shuffle(dev)
    task = task_of("multitask", train, subtasks=("tone", "length"))
    found = text_baselines(task, train, dev)
    linear = found["bag_of_words"]
    assert linear["tone/accuracy"] > 0.8 and linear["length/pearson"] > 0.8
    assert linear["mean"] == pytest.approx((linear["tone/accuracy"] + linear["length/pearson"]) / 2)


def test_large_data_are_sampled():
    train = examples_of(labelled(random.Random(0), 211))
    dev = examples_of(labelled(random.Random(1), 101))
    task = task_of("classification", train)
    found = text_baselines(task, train, dev, max_examples=83)
    assert (found["train_examples"], found["dev_examples"]) == (83, 83)
    found = text_baselines(task, train, dev, max_characters=1000)
    assert 10 < found["train_examples"] < 100 and 0 < found["dev_examples"] < 100
    assert found == text_baselines(task, train, dev, max_characters=1000)


def test_which_tasks_have_baselines():
    with_them = {"classification", "multi_label", "regression", "multitask"}
    for name in set(TASKS.names()) - with_them:
        task = TASKS[name](task_config(name=name), TOKENIZER)
        assert text_baselines(task, [], []) is None, name
