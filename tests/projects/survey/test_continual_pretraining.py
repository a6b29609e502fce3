"""Pre-training in stages: exact resume across them, logs, evaluation, a new run from a model."""

import json

import numpy as np
import pytest

from official.xlnet.api.pretrain import pretrain
from official.xlnet.checkpoints.pretrained_directory import load_pretrainer
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.runtime.history import read_history
from official.xlnet.training.evaluation import evaluate
from tests.helpers.compare import assert_all_equal

pytestmark = pytest.mark.slow

NAMES = ("token_document", "capitalization", "next_sentence")
SETTINGS = ["auxiliary=[token_document, capitalization, next_sentence]", "auxiliary_steps=[0,3,7]"]
SETTINGS += ["num_steps=10", "warmup_steps=2", "checkpoint_steps=4", "json_log=true"]


@pytest.fixture(scope="module")
def model_dir(world, tmp_path_factory):
    """The run that nobody interrupts."""
    directory = str(tmp_path_factory.mktemp("model"))
    pretrain(XLNetConfig.load(world.config, SETTINGS), world.data, directory)
    return directory


def test_a_run_that_is_stopped_in_each_stage_takes_the_same_steps(world, model_dir, tmp_path):
    for steps in (2, 3, 6, 10):
        config = XLNetConfig.load(world.config, SETTINGS)
        pretrain(config, world.data, str(tmp_path), steps=steps)
    assert read_history(str(tmp_path)) == read_history(model_dir)
    found, wanted = (load_pretrainer(x).trainable_variables for x in (str(tmp_path), model_dir))
    assert [variable.name for variable in found] == [variable.name for variable in wanted]
    assert_all_equal(found, wanted)


def test_logs_and_evaluation_have_the_loss_of_each_objective(world, model_dir):
    with open(f"{model_dir}/logs/scalars.jsonl", encoding="utf-8") as file:
        last = [json.loads(line) for line in file][-1]
    metrics, again = evaluate(model_dir, world.data), load_pretrainer(model_dir)
    for name in NAMES:
        assert 0 < last[f"loss_{name}"] < 2 and 0 < metrics[f"loss_{name}"] < 2
        assert np.any(again.auxiliary.parts[name].bias), f"{name} is not learned or not loaded"


def test_a_new_run_keeps_the_classifiers_that_both_have(world, model_dir, tmp_path):
    config = XLNetConfig.load(world.config, SETTINGS)
    config.objective.auxiliary = ("next_sentence", "capitalization")
    config.objective.auxiliary_steps = ()
    start, old = load_pretrainer(model_dir, config), load_pretrainer(model_dir)
    for name in config.objective.auxiliary:
        kept = old.auxiliary.parts[name]
        np.testing.assert_array_equal(start.auxiliary.parts[name].kernel, kept.kernel)
    result = pretrain(config, world.data, str(tmp_path), init_from=model_dir, steps=2)
    assert result["step"] == 2
