"""Pre-training in stages: exact resume across them, logs, evaluation, a new run from a model."""

import json
import random

import numpy as np
import pytest

from data_prep.pipelines.prepare import prepare
from official.xlnet.checkpoints.model_directory import load_pretrainer
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.runtime.history import read_history
from official.xlnet.training.evaluation import evaluate
from official.xlnet.training.pretraining import pretrain
from tests.helpers.corpora import as_text, random_documents, recipe, vocabulary_dir

pytestmark = pytest.mark.slow

NAMES = ("token_document", "capitalization", "next_sentence")
CONFIG = {
    **recipe(num_steps=10, warmup_steps=2, checkpoint_steps=4, json_log=True),
    "objective": {"auxiliary": list(NAMES), "auxiliary_steps": [0, 3, 7]},
}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    directory = tmp_path_factory.mktemp("continual")
    (directory / "text.txt").write_text(as_text(random_documents(random.Random(1), 30)))
    config = XLNetConfig.from_dict(CONFIG)
    text = str(directory / "text.txt")
    prepare([text], vocabulary_dir(), config, str(directory / "data"), num_workers=1)
    return str(directory / "data")


@pytest.fixture(scope="module")
def model_dir(data, tmp_path_factory):
    """The run that nobody interrupts."""
    directory = str(tmp_path_factory.mktemp("model"))
    pretrain(XLNetConfig.from_dict(CONFIG), data, directory)
    return directory


def variables(model_dir):
    model = load_pretrainer(model_dir)
    return {variable.name: variable.numpy() for variable in model.trainable_variables}


def test_a_run_that_is_stopped_in_each_stage_takes_the_same_steps(data, model_dir, tmp_path):
    stopped = str(tmp_path / "stopped")
    for steps in (2, 3, 6, 10):
        pretrain(XLNetConfig.from_dict(CONFIG), data, stopped, steps=steps)
    assert read_history(stopped) == read_history(model_dir)
    wanted, found = variables(model_dir), variables(stopped)
    assert wanted.keys() == found.keys()
    for name, value in wanted.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)


def test_logs_and_evaluation_have_the_loss_of_each_objective(data, model_dir):
    with open(f"{model_dir}/logs/scalars.jsonl", encoding="utf-8") as file:
        last = [json.loads(line) for line in file][-1]
    metrics = evaluate(model_dir, data)
    for name in NAMES:
        assert 0 < last[f"loss_{name}"] < 2 and 0 < metrics[f"loss_{name}"] < 2
    again = load_pretrainer(model_dir)
    for name in NAMES:
        assert np.any(again.auxiliary.parts[name].bias), f"{name} is not learned or not loaded"


def test_a_new_run_keeps_the_classifiers_that_both_have(data, model_dir, tmp_path):
    config = XLNetConfig.from_dict(CONFIG)
    config.objective.auxiliary = ("next_sentence", "capitalization")
    config.objective.auxiliary_steps = ()
    start, old = load_pretrainer(model_dir, config), load_pretrainer(model_dir)
    for name in config.objective.auxiliary:
        kept = old.auxiliary.parts[name]
        np.testing.assert_array_equal(start.auxiliary.parts[name].kernel, kept.kernel)
    result = pretrain(config, data, str(tmp_path), init_from=model_dir, steps=2)
    assert result["step"] == 2
