"""Optimizers and schedule against their equations in NumPy; decay and layer of every weight."""

import numpy as np
import pytest
import tensorflow as tf

from official.xlnet.configs.training import TrainingConfig
from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
from official.xlnet.training.optimization import OPTIMIZERS, create_optimizer, layer_of
from tests.helpers.compare import assert_all_close, assert_all_equal
from tests.helpers.tiny import tiny_config

NUM_LAYERS, STEPS = 3, 7
SETTINGS = {"num_steps": 5, "warmup_steps": 3, "learning_rate": 0.05, "weight_decay": 0.3}

# name: (shape, whether it is decayed, layer); kernels of heads, wide and tall ones.
VARIABLES = {
    "xlnet_encoder/word_embedding/embeddings": ([13, 5], True, 0),
    "xlnet_encoder/layer_0/attention/query_kernel": ([7, 2, 5], True, 1),
    "xlnet_encoder/layer_1/feed_forward/inner_kernel": ([5, 11], True, 2),
    "xlnet_encoder/layer_1/feed_forward/inner_bias": ([7], False, 2),
    "xlnet_encoder/layer_2/attention_norm/gamma": ([5], False, 3),
    "xlnet_encoder/shared_layer/feed_forward/outer_kernel": ([13, 3], True, 3),
    "lm_head/bias": ([13], False, 3),
    "classifier/kernel": ([5, 3], True, 3),
}


def arrays(seed, scale=1.0):
    rng = np.random.default_rng(seed)
    return [scale * rng.standard_normal(shape) for shape, _, _ in VARIABLES.values()]


def make_variables():
    """Random weights; those of the classifier are 0, and so is their norm."""
    values = [*arrays(0)[:-1], np.zeros([5, 3])]
    pairs = zip(values, VARIABLES, strict=True)
    return [tf.Variable(value, name=name, dtype=tf.float32) for value, name in pairs]


def gradients_of(step):
    """Some are clipped, some are not."""
    return arrays(100 + step, scale=10.0 ** np.random.default_rng(step).integers(-3, 2))


def rate_of(step, training):
    if step < training.warmup_steps:
        return training.learning_rate * step / training.warmup_steps
    done = (step - training.warmup_steps) / max(1, training.num_steps - training.warmup_steps)
    fall = training.learning_rate - training.end_learning_rate
    return training.end_learning_rate + fall * (1 - min(done, 1)) ** training.decay_power


def newton_schulz(gradient):
    x = gradient.reshape(len(gradient), -1) / np.linalg.norm(gradient)
    for _ in range(5):
        a = x @ x.T
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
    return max(x.shape) ** 0.5 * x.reshape(gradient.shape)


def expected(training):
    """Weights after each step, in float64, by the equations of the papers."""
    weights = [variable.numpy().astype(np.float64) for variable in make_variables()]
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
        {"warmup_steps": 0, "num_steps": 11},
        {"warmup_steps": 5},
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
    training = TrainingConfig(**{**SETTINGS, **changes})
    if where == "eager":  # On a GPU, Keras would compile each update with the first step's rate.
        name = "tf_keras.src.optimizers.optimizer.tf.config.list_physical_devices"
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


@pytest.mark.parametrize("clip_norm", [0.0, 1.0])
@pytest.mark.parametrize("factor", [np.nan, np.inf, 0.0])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_gradients_that_are_not_finite_or_all_zero_change_nothing(name, factor, clip_norm):
    settings = {**SETTINGS, "warmup_steps": 0, "optimizer": name, "clip_norm": clip_norm}
    optimizer = create_optimizer(TrainingConfig(**settings), NUM_LAYERS)
    variables, states = make_variables(), []
    others = len(VARIABLES) - 1
    for scales in ([1.0] * (others + 1), [float(factor != 0)] * others + [factor]):
        gradients = [
            tf.constant(scale * gradient, tf.float32)
            for scale, gradient in zip(scales, gradients_of(1), strict=True)
        ]
        optimizer.apply_gradients(zip(gradients, variables, strict=True))
        states.append([v.numpy() for v in [*variables, *optimizer.variables[2:]]])
    assert_all_equal(*states)


def test_sparse_gradients_are_clipped_and_applied_as_dense_ones():
    """A tied embedding's gradient comes in slices, with the same row more than once."""
    rng, results = np.random.default_rng(0), []
    slices = [
        tf.IndexedSlices(tf.constant(values), tf.constant([3, 1, 3, 3]), tf.constant([7, 5]))
        for values in rng.standard_normal((3, 4, 5)).astype(np.float32)
    ]
    for convert in (lambda gradient: gradient, tf.convert_to_tensor):
        optimizer = create_optimizer(TrainingConfig(**SETTINGS), NUM_LAYERS)
        variable = tf.Variable(tf.ones([7, 5]), name="word_embedding")
        for gradient in slices:
            optimizer.apply_gradients([(convert(gradient), variable)])
        results.append([variable.numpy(), *(v.numpy() for v in optimizer.variables[2:])])
    assert_all_close(*results, atol=1e-6)


# {name in a layer: whether it is decayed}
BLOCK = {
    **{
        f"attention/{name}_kernel": True for name in ("query", "key", "value", "position", "output")
    },
    "attention/segment_embedding": True,
    "attention_norm/gamma": False,
    "attention_norm/beta": False,
    "feed_forward/inner_kernel": True,
    "feed_forward/inner_bias": False,
    "feed_forward/outer_kernel": True,
    "feed_forward/outer_bias": False,
    "feed_forward_norm/gamma": False,
    "feed_forward_norm/beta": False,
}
BIASES = ("content_bias", "position_bias", "segment_bias")


@pytest.mark.parametrize("untie_r", [True, False])
def test_decay_and_layer_of_every_variable(untie_r):
    """The names are those that checkpoints and exclusions rely on: all of them, written out."""
    num_layers = 11
    config = tiny_config(num_layers=num_layers, untie_r=untie_r, d_model=4, d_inner=3)
    model = XLNetPretrainer(config)
    optimizer = create_optimizer(config.training, num_layers)
    optimizer.build(model.trainable_variables)
    wanted = {"word_embedding/embeddings": (True, 0), "mask_embedding": (True, 0)}
    block = BLOCK | {f"attention/{name}": False for name in BIASES if untie_r}
    for n in range(num_layers):
        wanted |= {f"layer_{n}/{name}": (decayed, n + 1) for name, decayed in block.items()}
    if not untie_r:
        wanted |= {f"shared_biases/{name}": (False, num_layers) for name in BIASES}
    wanted = {f"xlnet_encoder/{name}": value for name, value in wanted.items()}
    names = [variable.name.removesuffix(":0") for variable in model.trainable_variables]
    decayed = map(optimizer._use_weight_decay, model.trainable_variables)
    layers = [layer_of(name, num_layers) for name in names]
    got = dict(zip(names, zip(decayed, layers, strict=True), strict=True))
    assert got == wanted | {"lm_head/bias": (False, num_layers)}
    assert len(names) == len(got)
