"""`train_lib` of the Model Garden fine-tunes XLNet from a YAML file, with the steps of Keras."""

import random

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
import yaml
from official.core import exp_factory, task_factory, train_lib
from official.modeling import hyperparams

from data_prep.tasks.task_data import read_task
from official import xlnet
from official.xlnet import garden
from official.xlnet.inference.ensemble import Ensemble
from tests.helpers.corpora import WORDS, vocabulary_dir
from tests.helpers.tiny import randomize

pytestmark = pytest.mark.slow

BATCH, STEPS, DEV, SEED = 4, 6, 11, 3


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with tables, a model to start from, and the YAML of the experiment."""
    folder = tmp_path_factory.mktemp("garden")
    rng = random.Random(0)
    for name, rows in (("train", 29), ("dev", DEV)):
        lines = [
            f"{('bad', 'fine', 'good')[row % 3]}\t{' '.join(rng.choices(WORDS, k=3 + row % 17))}"
            for row in range(rows)
        ]
        (folder / f"{name}.tsv").write_text("label\ttext\n" + "\n".join(lines) + "\n")
    config = xlnet.XLNetConfig.from_dict(
        {
            "model": {
                **{"vocab_size": 211, "num_layers": 1, "d_model": 22, "num_heads": 2},
                **{"d_inner": 29, "mem_len": 0},
            },
            "data": {"seq_len": 29, "reuse_len": 11, "num_predict": 5},
        }
    )
    model = xlnet.XLNetPretrainer(config)
    randomize(model.trainable_variables, scale=0.1)
    xlnet.save_pretrained(model, str(folder / "start"), f"{vocabulary_dir()}/spiece.model")
    experiment = {
        "task": {
            "init_checkpoint": str(folder / "start"),
            "overrides": ["task.max_length=19", "task.summary=mean"],
            "train_data": {"input_path": str(folder / "train.tsv"), "global_batch_size": BATCH},
            "validation_data": {"input_path": str(folder / "dev.tsv"), "global_batch_size": BATCH},
        },
        "trainer": {
            **{"train_steps": STEPS, "steps_per_loop": 3, "summary_interval": 3},
            **{"validation_interval": STEPS, "checkpoint_interval": STEPS},
            "optimizer_config": {
                "learning_rate": {
                    "polynomial": {"initial_learning_rate": 0.01, "decay_steps": STEPS}
                },
                "warmup": {"polynomial": {"warmup_steps": 2}},
            },
        },
    }
    (folder / "experiment.yaml").write_text(yaml.safe_dump(experiment))
    return folder


def parameters(folder, **changes):
    params = exp_factory.get_exp_config("xlnet/classification")
    path = str(folder / "experiment.yaml")
    params = hyperparams.override_params_dict(params, path, is_strict=True)
    return hyperparams.override_params_dict(params, changes, is_strict=True)


@pytest.fixture(scope="module")
def trained(folder, tmp_path_factory):
    """(task, model, metrics)"""
    params = parameters(folder)
    tf_keras.utils.set_random_seed(SEED)
    directory = str(tmp_path_factory.mktemp("run"))
    strategy = tf.distribute.OneDeviceStrategy("cpu:0")
    with strategy.scope():
        task = task_factory.get_task(params.task, logging_dir=directory)
    model, metrics = train_lib.run_experiment(
        strategy, task, "train_and_eval", params, directory, run_post_eval=True
    )
    return task, model, metrics


def test_steps_are_those_of_keras(folder, trained):
    task, found, _ = trained
    tf_keras.utils.set_random_seed(SEED)
    model = task.build_model()
    task.initialize(model)
    first = [variable.numpy() for variable in model.tuned_variables]
    params = parameters(folder)
    optimizer = garden.ClassificationTask.create_optimizer(params.trainer.optimizer_config)
    model.compile(optimizer, run_eagerly=True)
    model.fit(task.build_inputs(params.task.train_data), steps_per_epoch=STEPS, verbose=0)
    for ours, expected, start in zip(
        found.tuned_variables, model.tuned_variables, first, strict=True
    ):
        np.testing.assert_allclose(ours, expected, atol=2e-5, err_msg=expected.name)
        assert np.abs(ours - start).max() > 1e-4, expected.name
    saved = xlnet.load_encoder(str(folder / "start"))
    (embedding,) = [v for v in saved.trainable_variables if v.shape == first[0].shape]
    np.testing.assert_array_equal(first[0], embedding)


def test_validation_counts_each_text_once(folder, trained, tmp_path):
    _, model, metrics = trained
    assert model.config.task.labels == ("bad", "fine", "good")
    xlnet.save_pretrained(model, str(tmp_path), f"{vocabulary_dir()}/spiece.model")
    examples, _ = read_task(str(folder / "dev.tsv"), model.config.task)
    expected = Ensemble([str(tmp_path)]).evaluate(examples)
    assert expected["examples"] == DEV
    assert metrics["accuracy"] == pytest.approx(expected["accuracy"])
    assert metrics["validation_loss"] == pytest.approx(expected["loss"], rel=1e-4)
    assert xlnet.predict(str(tmp_path), "the water")["label"] in model.config.task.labels
