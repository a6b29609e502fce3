"""`train_lib` of the Model Garden trains XLNet from a YAML file, with the same steps as Keras."""

import os
import random

import numpy as np
import pytest
import tensorflow as tf
import yaml
from official.core import exp_factory, task_factory, train_lib
from official.modeling import hyperparams

from data_prep.pipelines.prepare import prepare
from official import xlnet
from official.xlnet import garden
from tests.helpers.corpora import as_text, random_documents, vocabulary_dir
from tests.helpers.tiny import randomize

pytestmark = pytest.mark.slow

BATCH = 4


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with records, a recipe, a model to start from, and the YAML of the experiment."""
    folder = tmp_path_factory.mktemp("garden")
    (folder / "text.txt").write_text(as_text(random_documents(random.Random(1), 300)))
    config = xlnet.XLNetConfig.from_dict(
        {
            "model": {
                **{"vocab_size": 211, "num_layers": 1, "d_model": 22, "num_heads": 2},
                **{"d_inner": 29, "mem_len": 7},
            },
            "data": {
                **{"seq_len": 29, "reuse_len": 11, "num_predict": 5, "num_lanes": 8},
                "heldout_fraction": 0.2,
            },
            "training": {"batch_size": BATCH, "num_steps": 9, "warmup_steps": 0},
        }
    )
    prepare([str(folder / "text.txt")], vocabulary_dir(), config, str(folder / "data"))
    config.save(str(folder / "recipe"))
    model = xlnet.XLNetPretrainer(config)
    randomize(model.trainable_variables, scale=0.1)
    xlnet.save_pretrained(model, str(folder / "start"), f"{vocabulary_dir()}/spiece.model")
    data = {"input_path": str(folder / "data"), "global_batch_size": BATCH}
    learning_rate = {"initial_learning_rate": 0.01, "decay_steps": 9}
    experiment = {
        "task": {
            "recipe": str(folder / "recipe/config.yaml"),
            "init_checkpoint": str(folder / "start"),
            "train_data": data,
            "validation_data": data,
        },
        "trainer": {
            **{"train_steps": 6, "steps_per_loop": 3, "summary_interval": 3},
            **{"validation_interval": 6, "validation_steps": 2, "checkpoint_interval": 6},
            "optimizer_config": {
                "learning_rate": {"polynomial": learning_rate},
                "warmup": {"polynomial": {"warmup_steps": 2}},
            },
        },
    }
    (folder / "experiment.yaml").write_text(yaml.safe_dump(experiment))
    return folder


def parameters(folder, **changes):
    params = exp_factory.get_exp_config("xlnet/pretraining")
    path = str(folder / "experiment.yaml")
    params = hyperparams.override_params_dict(params, path, is_strict=True)
    return hyperparams.override_params_dict(params, changes, is_strict=True)


def run(folder, model_dir, **changes):
    params = parameters(folder, **changes)
    strategy = tf.distribute.OneDeviceStrategy("cpu:0")
    with strategy.scope():
        task = task_factory.get_task(params.task, logging_dir=str(model_dir))
    return train_lib.run_experiment(
        strategy, task, "train_and_eval", params, str(model_dir), run_post_eval=True
    )


@pytest.fixture(scope="module")
def trained(folder, tmp_path_factory):
    """(model, metrics, directory)"""
    directory = tmp_path_factory.mktemp("run")
    return *run(folder, directory), directory


def test_steps_are_those_of_keras(folder, trained):
    params = parameters(folder)
    model = xlnet.load_pretrainer(str(folder / "start"))
    optimizer = garden.PretrainingTask.create_optimizer(params.trainer.optimizer_config)
    model.compile(optimizer, run_eagerly=True)
    data = xlnet.pretraining_dataset(str(folder / "data"), BATCH, config=model.config)
    model.fit(data, steps_per_epoch=6, verbose=0)
    start = xlnet.load_pretrainer(str(folder / "start"))
    for found, expected, first in zip(
        trained[0].trainable_variables,
        model.trainable_variables,
        start.trainable_variables,
        strict=True,
    ):
        np.testing.assert_allclose(found, expected, atol=2e-5, err_msg=expected.name)
        assert np.abs(found - first).max() > 1e-3, expected.name


def test_metrics_checkpoint_and_summaries(trained):
    _, metrics, directory = trained
    assert 3 < metrics["validation_loss"] < 7
    names = os.listdir(directory)
    assert "ckpt-6.index" in names and {"train", "validation"} <= set(names)


def test_a_run_is_resumed_and_saved_as_a_model_directory(folder, trained, tmp_path):
    model, _, directory = trained
    again, _ = run(folder, directory, trainer={"train_steps": 6})
    for found, expected in zip(again.variables, model.variables, strict=True):
        if "window_ids" in expected.name:
            continue  # What was restored is taken for what it should be.
        np.testing.assert_array_equal(found, expected, expected.name)
    xlnet.save_pretrained(again, str(tmp_path), f"{vocabulary_dir()}/spiece.model")
    assert xlnet.score(str(tmp_path), "the water").total < 0
