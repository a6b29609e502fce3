"""Training in float16 with dynamic loss scaling: near float32, and what an overflow does."""

import json
import pathlib

import numpy as np
import pytest
import tensorflow as tf

from official.xlnet.api.pretrain import pretrain
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.modeling.ops.keras import keras
from official.xlnet.runtime.history import read_history
from official.xlnet.runtime.metrics_log import EVENTS_FILE
from official.xlnet.training import optimization
from official.xlnet.training.bad_steps import cause
from tests.helpers.compare import assert_all_equal
from tests.helpers.compiled import make_model
from tests.helpers.tiny import random_windows

FLOAT16 = "precision=mixed_float16"


@pytest.fixture(autouse=True)
def policy():
    """Runs leave the global policy alone: a model loaded afterwards computes as it did before."""
    yield
    assert keras.mixed_precision.global_policy().name == "float32"


def losses_of(model_dir):
    return {line["step"]: line["loss"] for line in read_history(str(model_dir))}


@pytest.mark.slow
def test_pre_training_is_near_float32_and_goes_on_in_another_precision(world, tmp_path):
    for steps, precision in ((4, "float32"), (8, "mixed_float16"), (11, "float32")):
        config = XLNetConfig.load(world.config, [f"precision={precision}"])
        pretrain(config, world.data, str(tmp_path), steps=steps)
    found, wanted = ([*losses_of(path).values()][:11] for path in (tmp_path, world.pretrained))
    events = [json.loads(x) for x in (tmp_path / EVENTS_FILE).read_text().splitlines()]
    assert [(x["event"], x["step"]) for x in events] == [("changed settings", n) for n in (4, 8)]
    np.testing.assert_allclose(found, wanted, atol=0.01)
    assert found[:4] == pytest.approx(wanted[:4], abs=1e-5) and found[4:] != wanted[4:]


@pytest.mark.slow
def test_pre_training_skips_overflows_and_says_so(world, tmp_path, monkeypatch):
    """With `on_bad_step=stop`: an overflow is no divergence."""
    monkeypatch.setattr(optimization, "INITIAL_LOSS_SCALE", 2.0**24)
    monkeypatch.setattr(cause, "first_bad_value", lambda *_: pytest.fail("taken for diverged"))
    config = XLNetConfig.load(world.config, [FLOAT16, "init_std=0.1", "json_log=true"])
    model_dir, number = str(tmp_path), []
    for steps in (20, 22):  # The scale is part of the checkpoint.
        pretrain(config, world.data, model_dir, steps=steps)
        events = [json.loads(x) for x in (tmp_path / EVENTS_FILE).read_text().splitlines()]
        number.append(len(events))
    assert 0 < number[0] == number[1] < 15
    assert {event["event"] for event in events} == {"overflow"}
    assert [event["loss_scale"] for event in events] == [2.0 ** (23 - n) for n in range(number[0])]
    assert {*losses_of(model_dir)} == {*range(1, 23)} - {event["step"] for event in events}
    lines = pathlib.Path(model_dir, "logs/scalars.jsonl").read_text().splitlines()
    assert json.loads(lines[-1])["loss_scale"] == 2.0 ** (24 - number[0])


@pytest.mark.parametrize("jit_compile", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_an_overflow_leaves_weights_and_moments_unchanged(monkeypatch, jit_compile):
    monkeypatch.setattr(optimization, "INITIAL_LOSS_SCALE", 2.0**60)
    model = make_model(precision="mixed_float16", jit_compile=jit_compile, num_layers=1)
    moments = [x for x in model.optimizer.variables if len(x.shape)]
    variables = [*model.trainable_variables, *moments]
    assert len(variables) == 3 * len(model.trainable_variables)
    before = [variable.numpy() for variable in variables]
    step = tf.function(model.train_step, jit_compile=True) if jit_compile else model.train_step
    metrics = step(random_windows(1))
    assert np.isfinite(metrics["loss"]) and not np.isfinite(metrics["gradient_norm"])
    assert_all_equal(variables, before)
    assert float(model.optimizer.loss_scale) == 2.0**59
    assert int(model.optimizer.iterations) == 1
