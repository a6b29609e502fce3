"""Training in float16 with dynamic loss scaling: near float32, and what an overflow does."""

import json

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from benchmarks.data.random_records import write_data_set
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.data.examples import TextExample
from official.xlnet.runtime.history import read_history
from official.xlnet.runtime.metrics_log import EVENTS_FILE
from official.xlnet.training import optimization, replay
from official.xlnet.training.finetuning import finetune
from official.xlnet.training.optimization import create_optimizer
from official.xlnet.training.pretraining import pretrain
from tests.helpers.compiled import make_model
from tests.helpers.corpora import vocabulary_dir
from tests.helpers.task_corpora import labelled, random_rng, task_config
from tests.helpers.tiny import random_windows

STEPS = 7


@pytest.fixture(autouse=True)
def policy():
    """Runs leave the global policy alone: a model loaded afterwards computes as it did before."""
    yield
    assert tf_keras.mixed_precision.global_policy().name == "float32"


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("data") / "data")
    write_data_set(path, 19, 7, 4, 5)
    return path


def pretrain_config(**changes):
    tree = {
        "model": {"vocab_size": 97, "num_layers": 1, "d_model": 22, "num_heads": 2},
        "data": {"seq_len": 19, "reuse_len": 7, "num_predict": 3, "num_lanes": 4},
        "training": {"batch_size": 4, "num_steps": 60, "warmup_steps": 0, "learning_rate": 0.003},
    }
    config = XLNetConfig.from_dict(tree)
    for name, value in {"d_inner": 29, "mem_len": 7, "json_log": "true", **changes}.items():
        config.set(f"{name}={value}")
    return config


def events_of(model_dir):
    path = model_dir / EVENTS_FILE
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def losses_of(model_dir):
    return {line["step"]: line["loss"] for line in read_history(str(model_dir))}


@pytest.fixture(scope="module")
def calm(data, tmp_path_factory):
    """Losses of a run in float32."""
    output = tmp_path_factory.mktemp("calm")
    pretrain(pretrain_config(), data, str(output), steps=STEPS)
    assert not events_of(output)
    return list(losses_of(output).values())


@pytest.mark.slow
def test_pre_training_is_near_float32(data, calm, tmp_path):
    pretrain(pretrain_config(precision="mixed_float16"), data, str(tmp_path), steps=STEPS)
    losses = list(losses_of(tmp_path).values())
    assert not events_of(tmp_path)
    np.testing.assert_allclose(losses, calm, atol=0.01)
    assert losses != calm


def examples(number, seed):
    rows = labelled(random_rng(seed), number)
    return [TextExample(str(n), (text,), label) for n, (label, text) in enumerate(rows)]


def finetune_run(output, **changes):
    config = task_config(name="classification", batch_size=8, num_steps=STEPS, checkpoint_steps=5)
    for name, value in changes.items():
        config.set(f"{name}={value}")
    vocab = f"{vocabulary_dir()}/spiece.model"
    return finetune(config, examples(37, 0), examples(11, 1), str(output), vocab=vocab)


@pytest.mark.slow
def test_fine_tuning_is_near_float32(tmp_path):
    metrics, losses = {}, {}
    for precision in ("float32", "mixed_float16"):
        output = tmp_path / precision
        metrics[precision] = finetune_run(output, precision=precision)
        losses[precision] = list(losses_of(output).values())
        assert not events_of(output)
    np.testing.assert_allclose(losses["mixed_float16"], losses["float32"], atol=0.02)
    assert losses["mixed_float16"] != losses["float32"]
    assert metrics["mixed_float16"]["loss"] == pytest.approx(metrics["float32"]["loss"], abs=0.03)


def test_gradients_that_underflow_in_float16_are_kept():
    """A loss of 1e-8 has gradients below float16's smallest number, 6e-8; scaled, they are not."""
    optimizer = create_optimizer(pretrain_config(precision="mixed_float16").training, num_layers=1)
    x = tf.constant([0.5, 0.25], tf.float16)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        loss = tf.reduce_sum(tf.cast(x, tf.float32)) * 1e-8
        scaled = optimizer.get_scaled_loss(loss)
    assert not tape.gradient(loss, x).numpy().any()
    gradient = tf.cast(tape.gradient(scaled, x), tf.float32)
    (gradient,) = optimizer.get_unscaled_gradients([gradient])
    np.testing.assert_allclose(gradient, [1e-8, 1e-8], rtol=0.01)


@pytest.mark.slow
def test_pre_training_skips_overflows_and_says_so(data, tmp_path, monkeypatch):
    """With `on_bad_step=stop`: an overflow is no divergence."""
    monkeypatch.setattr(optimization, "INITIAL_LOSS_SCALE", 2.0**24)
    monkeypatch.setattr(replay, "first_bad_value", lambda *_: pytest.fail("taken for diverged"))
    config = pretrain_config(precision="mixed_float16", init_std=0.1)
    pretrain(config, data, str(tmp_path / "model"), steps=20)
    events = events_of(tmp_path / "model")
    number = len(events)
    assert {event["event"] for event in events} == {"overflow"} and number < 15
    scales = [event["loss_scale"] for event in events]
    assert scales == [2.0 ** (23 - n) for n in range(number)]
    skipped = {event["step"] for event in events}
    assert set(losses_of(tmp_path / "model")) == set(range(1, 21)) - skipped
    lines = (tmp_path / "model/logs/scalars.jsonl").read_text().splitlines()
    assert json.loads(lines[-1])["loss_scale"] == 2.0 ** (24 - number)
    # The scale is part of the checkpoint.
    pretrain(config, data, str(tmp_path / "model"), steps=22)
    assert len(events_of(tmp_path / "model")) == number


@pytest.mark.slow
@pytest.mark.parametrize("jit_compile", [False, True])
def test_an_overflow_leaves_weights_and_moments_unchanged(monkeypatch, jit_compile):
    monkeypatch.setattr(optimization, "INITIAL_LOSS_SCALE", 2.0**60)
    model = make_model(precision="mixed_float16", jit_compile=jit_compile)
    step = tf.function(model.train_step, jit_compile=jit_compile)
    before = [v.numpy() for v in [*model.trainable_variables, *model.optimizer.variables[1:]]]
    metrics = step(random_windows(1))
    assert np.isfinite(metrics["loss"]) and not np.isfinite(metrics["gradient_norm"])
    after = [v.numpy() for v in [*model.trainable_variables, *model.optimizer.variables[1:]]]
    for ours, theirs in zip(after, before, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert float(model.optimizer.loss_scale) == 2.0**59
    assert int(model.optimizer.iterations) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "second"), [("float32", "mixed_float16"), ("mixed_float16", "float32")]
)
def test_a_run_continues_in_another_precision(data, calm, tmp_path, first, second):
    pretrain(pretrain_config(precision=first), data, str(tmp_path), steps=4)
    pretrain(pretrain_config(precision=second), data, str(tmp_path), steps=STEPS)
    np.testing.assert_allclose(list(losses_of(tmp_path).values()), calm, atol=0.01)
