"""The fine-tuning recipes hold table 8 of the paper, and every data set's settings are valid."""

import pathlib

import pytest

from data_prep.tasks.datasets import DATASETS
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.tasks.registry import TASKS

CONFIGS = pathlib.Path(__file__).parents[3] / "configs"


@pytest.mark.parametrize(
    ("name", "length", "batch", "rate", "steps", "decay"),
    [
        ("race", 512, 32, 2e-5, 12000, 1.0),
        ("squad2", 512, 48, 3e-5, 8000, 0.75),
        ("squad1", 512, 48, 3e-5, 8000, 0.75),
        ("mnli", 128, 128, 2e-5, 10000, 1.0),
        ("yelp5", 512, 128, 1e-5, 10000, 1.0),
    ],
)
def test_table_8(name, length, batch, rate, steps, decay):
    config = XLNetConfig.load(str(CONFIGS / f"{name}.yaml"))
    training = config.training
    assert (config.model.dropout, config.model.dropatt) == (0.1, 0.1)
    assert config.task.max_length == length
    assert (training.batch_size, training.learning_rate, training.num_steps) == (batch, rate, steps)
    assert (training.layer_decay, training.weight_decay, training.adam_epsilon) == (
        decay,
        0.01,
        1e-6,
    )
    assert (training.end_learning_rate, training.decay_power) == (0.0, 1.0)


@pytest.mark.parametrize("name", DATASETS)
def test_settings_of_a_data_set_are_those_of_a_task(name):
    settings = {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in DATASETS[name].items()
    }
    config = XLNetConfig.from_dict({"task": settings})
    config.check()
    assert config.task.name in TASKS
