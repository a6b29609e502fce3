"""Every registered optimizer and schedule, against equations in float64 where there are some."""

import contextlib

import numpy as np
import pytest
import tensorflow as tf

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.registry import SCHEDULES
from official.xlnet.configs.training import TrainingConfig
from official.xlnet.errors import ConfigError
from official.xlnet.modeling.ops.keras import IS_KERAS_3, keras
from official.xlnet.training.optimization import (
    OPTIMIZERS,
    AdamW,
    Muon,
    create_optimizer,
    register_optimizer,
)
from official.xlnet.training.schedules import WarmupThenDecay
from tests.helpers.optimizers import (
    NUM_LAYERS,
    SETTINGS,
    VARIABLES,
    check_optimizer,
    gradients_of,
    make_variables,
    values,
)

STEPS = 7


def test_some_gradients_are_clipped_and_some_are_not():
    norms = [np.sqrt(sum(np.sum(g**2) for g in gradients_of(step))) for step in range(STEPS)]
    clip_norm = TrainingConfig.create(**SETTINGS).clip_norm
    assert min(norms) < clip_norm / 10 and max(norms) > 10 * clip_norm


# {schedule: (its settings, factor after a share of the steps, in float64)}
DECAYS = {
    "polynomial": [
        ({}, lambda done: 1 - done),
        ({"decay_power": 2.0, "end_learning_rate": 0.01}, lambda done: (1 - done) ** 2),
    ],
    "cosine": [({"end_learning_rate": 0.01}, lambda done: np.cos(np.pi * done / 2) ** 2)],
    "constant_with_cooldown": [
        ({}, lambda done: np.interp(done, [0.8, 1], [1, 0])),
        (
            {"cooldown_share": 0.5, "cooldown": "sqrt", "end_learning_rate": 0.01},
            lambda done: 1 - np.sqrt(2 * max(done, 0.5) - 1),
        ),
    ],
}


def rate_of(step, training, decay=None):
    """Learning rate in float64."""
    if step < training.warmup_steps:
        return training.learning_rate * step / training.warmup_steps
    done = (step - training.warmup_steps) / max(1, training.num_steps - training.warmup_steps)
    fall = training.learning_rate - training.end_learning_rate
    decay = decay or (lambda done: (1 - done) ** training.decay_power)
    return training.end_learning_rate + fall * decay(min(done, 1))


@pytest.mark.parametrize("name", SCHEDULES.names())
@pytest.mark.parametrize("warmup_steps", [0, 30])
def test_a_schedule(name, warmup_steps):
    assert SCHEDULES[name].__doc__, f"{name}: write its equation in its docstring"
    where = "DECAYS of tests/conformance/test_optimizers.py"
    assert name in DECAYS, f"{name}: write its equation, in float64, in {where}"
    for settings, decay in DECAYS[name]:
        settings = {"num_steps": 430, "warmup_steps": warmup_steps, "schedule": name, **settings}
        training = TrainingConfig.create(**{**SETTINGS, **settings})
        training.check()
        schedule = create_optimizer(training, NUM_LAYERS)._learning_rate
        again = WarmupThenDecay.from_config(schedule.get_config())
        for step in (0, 1, 17, 29, 30, 31, 200, 230, 330, 331, 350, 351, 429, 430, 431, 10_000):
            wanted = rate_of(step, training, decay)
            for found in (schedule, again, tf.function(schedule)):
                assert float(found(tf.constant(step))) == pytest.approx(wanted, 1e-4, 1e-8), step


@pytest.mark.parametrize("name", OPTIMIZERS.names())
def test_an_optimizer(name, tmp_path):
    check_optimizer(name, tmp_path)


def newton_schulz(gradient):
    x = gradient.reshape(len(gradient), -1) / np.linalg.norm(gradient)
    for _ in range(5):
        a = x @ x.T
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
    return max(x.shape) ** 0.5 * x.reshape(gradient.shape)


def expected(training):
    """Weights after each step, in float64, by the equations of the papers."""
    weights = [value.astype(np.float64) for value in values(make_variables())]
    first, second = ([np.zeros_like(weight) for weight in weights] for _ in range(2))
    b1, b2, history = training.adam_beta_1, training.adam_beta_2, []
    for step in range(STEPS):
        gradients = gradients_of(step)
        norm = np.sqrt(sum(np.sum(g**2) for g in gradients))
        clip = min(1, training.clip_norm / norm) if training.clip_norm else 1
        for i, (name, (_, is_decayed, layer)) in enumerate(VARIABLES.items()):
            g, w = clip * gradients[i], weights[i]
            is_matrix = training.optimizer == "muon" and name.endswith("_kernel")
            beta = 0.95 if is_matrix else b1
            first[i] = beta * first[i] + (1 - beta) * g
            second[i] = b2 * second[i] + (1 - b2) * g**2
            if is_matrix:
                change = training.muon_scale * newton_schulz(beta * first[i] + (1 - beta) * g)
            else:
                root = np.sqrt(second[i] / (1 - b2 ** (step + 1)))
                change = first[i] / (1 - b1 ** (step + 1)) / (root + training.adam_epsilon)
            change = change + training.weight_decay * is_decayed * w
            if training.optimizer == "lamb" and is_decayed and w.any():
                change *= np.linalg.norm(w) / np.linalg.norm(change)
            above = NUM_LAYERS - layer if layer or training.decay_embedding else 0
            weights[i] = w - rate_of(step, training) * training.layer_decay**above * change
        history.append([*weights])
    return history


@pytest.mark.parametrize("where", ["eager", "graph"])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"clip_norm": 0.0, "adam_beta_1": 0.8, "adam_beta_2": 0.95, "adam_epsilon": 1e-3},
        {"decay_power": 2.0, "end_learning_rate": 0.01, "layer_decay": 0.6},
        {"layer_decay": 0.6, "decay_embedding": False},
        {"optimizer": "lamb", "adam_beta_2": 0.95},
        {"optimizer": "lamb", "layer_decay": 0.6, "clip_norm": 0.0},
        {"optimizer": "muon", "muon_scale": 0.3, "adam_beta_2": 0.9, "clip_norm": 0.0},
        {"optimizer": "muon", "layer_decay": 0.6},
    ],
    ids=str,
)
def test_updates_are_those_of_the_papers(changes, where, monkeypatch):
    training = TrainingConfig.create(**{**SETTINGS, **changes})
    if (
        where == "eager" and not IS_KERAS_3
    ):  # On a GPU, Keras would compile each update with the first step's rate.
        name = f"{keras.__name__}.src.optimizers.optimizer.tf.config.list_physical_devices"
        monkeypatch.setattr(name, lambda *_: ["a GPU"])
    optimizer, variables = create_optimizer(training, NUM_LAYERS), make_variables()
    monkeypatch.undo()
    optimizer.build(variables)
    apply = optimizer.apply_gradients
    apply = tf.function(apply) if where == "graph" else apply
    for step, wanted in enumerate(expected(training)):
        gradients = [tf.constant(gradient, tf.float32) for gradient in gradients_of(step)]
        apply(list(zip(gradients, variables, strict=True)))
        for variable, value in zip(variables, wanted, strict=True):
            np.testing.assert_allclose(
                variable, value, rtol=1e-4, atol=2e-5, err_msg=f"{step} {variable.name}"
            )


def test_an_optimizer_of_another_package_reads_the_keys_that_it_says():
    for name, base in (("signs", AdamW), ("larger", Muon)):
        register_optimizer(name)(type(name, (base,), {}))
        expected = contextlib.nullcontext()
        if base is AdamW:
            expected = pytest.raises(ConfigError, match=r"muon_scale: .* with .*optimizer=signs")
        with expected:
            XLNetConfig().apply([f"training.optimizer={name}", "training.muon_scale=0.5"])
        del OPTIMIZERS[name]


def test_other_optimizers_and_schedules_are_refused():
    with pytest.raises(ConfigError, match=r"optimizer 'sgd': expected a subclass of .*Optimizer"):
        register_optimizer("sgd")(object)
    for key in ("optimizer", "schedule"):
        with pytest.raises(
            ConfigError, match=rf"training.{key}: expected one of .*--import=MODULE"
        ):
            TrainingConfig.create(**{key: "sgd"}).check()
