"""The fine-tuning recipes hold table 8 of the paper, and every data set's settings are valid."""

import pathlib
import re

import pytest

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.registry import DATASETS, TASKS
from official.xlnet.jobs.finetuning import task_configuration
from official.xlnet.projects import PROJECTS
from tests.helpers.package.recipes import recipes
from tests.helpers.tiny import tiny_config

CONFIGS = pathlib.Path(__file__).parents[3] / "configs"
# Data sets whose recipes name the answer module of a project.
OF_SURVEY = {"snli", "scitail"}
RECIPES = {
    path.stem: re.search(r"xlnet finetune --task=(\w+)", path.read_text())
    .group(1)
    .replace("NAME", path.stem)
    for path in recipes().values()
    if "xlnet finetune" in path.read_text()
}


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("race", (512, 32, 2e-5, 12000, 1.0)),
        ("squad2", (512, 48, 3e-5, 8000, 0.75)),
        ("squad1", (512, 48, 3e-5, 8000, 0.75)),
        ("mnli", (128, 128, 2e-5, 10000, 1.0)),
        ("yelp5", (512, 128, 1e-5, 10000, 1.0)),
    ],
)
def test_table_8(name, wanted):
    config = XLNetConfig.load(str(CONFIGS / f"{name}.yaml"))
    own = ("batch_size", "learning_rate", "num_steps", "layer_decay")
    assert (config.task.max_length, *(vars(config.training)[key] for key in own)) == wanted
    shared = ("weight_decay", "adam_epsilon", "end_learning_rate", "decay_power")
    assert [vars(config.training)[key] for key in shared] == [0.01, 1e-6, 0.0, 1.0]


def test_every_data_set_of_the_paper_has_a_recipe():
    lacking = set() if "survey" in PROJECTS else OF_SURVEY
    assert {*RECIPES.values()} >= {*DATASETS.names()} - {"swag", "conll2003"} - lacking


@pytest.mark.parametrize("name", sorted(set(RECIPES) - {"ranking"}))
def test_dropout_is_the_recipes_own_and_layer_wise_decay_leaves_the_embedding_alone(name, tmp_path):
    """Whatever model it starts from. A ranking's encoder is frozen, so it has none."""
    tiny_config(dropout=0.0, dropatt=0.0).save(str(tmp_path))
    recipe = f"configs/{name}.yaml"
    config = task_configuration(RECIPES[name], recipe, [], init_from=str(tmp_path))
    assert (config.model.dropout, config.model.dropatt) == (0.1, 0.1)
    assert config.training.layer_decay == 1 or not config.training.decay_embedding


@pytest.mark.parametrize("name", DATASETS.names())
def test_settings_of_a_data_set_are_those_of_a_task(name):
    settings = {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in DATASETS[name].items()
    }
    config = XLNetConfig.from_dict({"task": settings})
    config.check()
    assert config.task.name in TASKS.names()
