"""The fine-tuning recipes hold table 8 of the paper, and every data set's settings are valid."""

import pathlib
import re

import pytest

from official.xlnet.api.finetuning import task_configuration
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.registry import DATASETS, TASKS
from tests.helpers.tiny import tiny_config

CONFIGS = pathlib.Path(__file__).parents[3] / "configs"
RECIPES = {
    path.stem: re.search(r"xlnet finetune --task=(\w+)", path.read_text())
    .group(1)
    .replace("NAME", path.stem)
    for path in sorted(CONFIGS.glob("*.yaml"))
    if "xlnet finetune" in path.read_text()
}


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


@pytest.mark.parametrize("name", sorted(DATASETS))
def test_every_data_set_of_the_paper_has_a_recipe(name):
    names = [recipe for recipe, task in RECIPES.items() if task == name]
    assert names or name in ("swag", "conll2003")


@pytest.mark.parametrize("name", sorted(set(RECIPES) - {"ranking"}))
def test_dropout_is_the_recipes_own_and_not_that_of_the_model_it_starts_from(name, tmp_path):
    """A ranking's encoder is frozen, so it has none."""
    tiny_config(dropout=0.0, dropatt=0.0).save(str(tmp_path))
    config = task_configuration(
        RECIPES[name], str(CONFIGS / f"{name}.yaml"), [], init_from=str(tmp_path)
    )
    assert (config.model.dropout, config.model.dropatt) == (0.1, 0.1)


def test_layer_wise_decay_leaves_the_embedding_alone_as_in_the_paper():
    for name in RECIPES:
        training = XLNetConfig.load(str(CONFIGS / f"{name}.yaml")).training
        assert training.layer_decay == 1 or not training.decay_embedding, name


@pytest.mark.parametrize("name", DATASETS)
def test_settings_of_a_data_set_are_those_of_a_task(name):
    settings = {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in DATASETS[name].items()
    }
    config = XLNetConfig.from_dict({"task": settings})
    config.check()
    assert config.task.name in TASKS.names()
