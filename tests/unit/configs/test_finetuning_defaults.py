"""Settings of fine-tuning that follow from the size of the model and the number of examples."""

import math
import pathlib

import pytest

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.finetuning_defaults import (
    complete_settings,
    default_batch_size,
    default_epochs,
    default_learning_rate,
    describe_settings,
    given_settings,
    keep_settings,
)
from official.xlnet.jobs.finetuning import task_configuration
from tests.helpers.package.of_projects import rows
from tests.helpers.package.recipes import recipes

CONFIGS = pathlib.Path(__file__).parents[3] / "configs"
RECIPES = [path for path in recipes().values() if "xlnet finetune --task" in path.read_text()]


def chosen(num_examples, *overrides, recipe="base", num_replicas=1):
    config = XLNetConfig.load(str(CONFIGS / f"{recipe}.yaml"))
    config.training = type(config.training)(num_steps=1000, warmup_steps=0, batch_size=32)
    config.set("task.name=classification")
    for override in overrides:
        config.set(override)
    complete_settings(config, given_settings(None, overrides), num_examples, num_replicas)
    config.check()
    return config


def test_rates_epochs_and_batches_by_sizes():
    base, large = (
        default_learning_rate(XLNetConfig.load(str(CONFIGS / f"{name}.yaml")).model.num_parameters)
        for name in ("base", "large")
    )
    assert base == 3e-5 and 1e-5 <= large <= 2e-5
    rates = [default_learning_rate(round(10**n)) for n in (3, 5, 6, 7, 8, 9)]
    assert rates == sorted(rates, reverse=True) and rates[0] == 3e-3 and rates[4] == 4e-5
    assert [default_epochs(n) for n in (1, 401, 2000, 5003, 100_003)] == [40, 40, 8, 3, 3]
    assert [default_batch_size(n) for n in (1, 999, 1000, 10**7)] == [16, 16, 32, 32]
    assert default_batch_size(5000, multiple=6) == 36 and default_batch_size(5, multiple=16) == 16


def test_all_is_chosen_if_nothing_is_given():
    config = chosen(2003, "vocab_size=4000", recipe="tiny")
    training, task = config.training, config.task
    assert (training.learning_rate, training.batch_size) == (3e-3, 32)
    assert (task.epochs, task.summary) == (8, "mean")
    assert training.warmup_steps / training.num_steps == pytest.approx(0.1)
    assert (training.checkpoint_steps, task.patience) == (84, 3)  # A sixth of 8 · 63 steps.
    assert describe_settings(config, 2003) == (
        "learning rate 3e-3 for a model of 0.9 M parameters; 8 epochs of 2,003 examples in "
        "batches of 32, warm-up 10%, stops after 3 evaluations without gain"
    )
    assert chosen(2003).task.summary == "last"


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("learning_rate=0.5", {"learning_rate": 0.5, "batch_size": 32, "epochs": 8}),
        ("training.batch_size=7", {"learning_rate": 3e-5, "batch_size": 7, "epochs": 8}),
        ("task.epochs=2.5", {"epochs": 2.5, "warmup_steps": 100, "num_steps": 1000}),
        ("num_steps=50", {"epochs": 0, "num_steps": 50, "warmup_steps": 5, "checkpoint_steps": 9}),
        ("warmup_steps=300", {"epochs": 0, "num_steps": 1000, "warmup_steps": 300}),
        ("checkpoint_steps=11", {"checkpoint_steps": 11, "epochs": 8, "patience": 0}),
        ("epochs=20", {"epochs": 20, "patience": 0}),
        ("patience=5", {"epochs": 8, "patience": 5}),
        ("parallel_slices=3", {"batch_size": 33}),
        ("task.summary=first", {"summary": "first"}),
    ],
)
def test_what_is_given_is_kept(override, expected):
    config = chosen(2003, override)
    found = {**config.training.as_dict(), **config.task.as_dict()}
    assert {key: found[key] for key in expected} == expected


def test_a_run_has_six_evaluations_and_stops_after_half_of_them_without_gain():
    for number in (1, 7, 95, 333, 600, 4999, 50_021):
        config = chosen(number)
        length = math.ceil(config.task.epochs * math.ceil(number / config.training.batch_size))
        evaluations = math.ceil(length / config.training.checkpoint_steps)
        assert evaluations == 6 or length < 30, number
        assert config.task.patience == 3
    long = chosen(1_000_000)  # 93,750 steps.
    assert (long.training.checkpoint_steps, long.task.patience) == (1000, 47)


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_recipes_stay_as_they_are(path):
    config, before = XLNetConfig.load(str(path)), XLNetConfig.load(str(path))
    complete_settings(config, given_settings(str(path), []), num_examples=101)
    config.task.pooled_segments = before.task.pooled_segments
    assert config.as_dict() == before.as_dict()


def test_given_settings(tmp_path):
    path = tmp_path / "recipe.yaml"
    path.write_text("training: {learning_rate: 1e-4}\ntask: {summary: attn}\n")
    expected = {"learning_rate", "summary", "dropout", "epochs"}
    assert given_settings(str(path), ["model.dropout=0.2", "epochs=3"]) == expected
    assert given_settings(str(tmp_path), []) == set()
    XLNetConfig().save(str(tmp_path))
    assert given_settings(str(tmp_path), []) > {"learning_rate", "epochs", "mem_len"}
    path.write_text("# As they are.")
    assert given_settings(str(path), []) == set()


def test_a_run_goes_on_as_it_began():
    saved = chosen(2003)
    saved.training.learning_rate, saved.task.epochs, saved.task.summary = 0.25, 0.0, "attn"
    saved.training.num_steps, saved.training.warmup_steps = 811, 17
    config = chosen(50_021, "batch_size=8")
    saved.task.patience = 0  # Of a version without early stopping.
    saved.task.pooled_segments = "all"
    keep_settings(config, {"batch_size"}, saved)
    assert config.task.patience == 0
    training = config.training
    assert (training.learning_rate, training.num_steps, training.warmup_steps) == (0.25, 811, 17)
    assert (config.task.epochs, config.task.summary, training.batch_size) == (0.0, "attn", 8)
    assert config.task.pooled_segments == "all"


@pytest.mark.parametrize("name", ["ranking", *rows("WITH_GAIN")])
def test_new_runs_have_the_gain_of_trec_eval_and_older_ones_keep_theirs(name):
    config = task_configuration(name, None, [], None)
    assert config.task.gain == "linear" and config.task.pooled_segments == "all"
    assert task_configuration(name, None, ["task.gain=exponential"], None).task.gain[0] == "e"
    saved = XLNetConfig.from_dict({"task": {"name": name}})  # Of a version without the key.
    keep_settings(config, (), saved)
    assert config.task.gain == "exponential"
