"""AdamW, its exclusions, schedule, clipping and layer-wise rates against numpy; LAMB; Muon."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from official.modeling.optimization import lamb

from official.xlnet.configs.training import TrainingConfig
from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
from official.xlnet.training.optimization import create_optimizer, layer_of
from official.xlnet.training.orthogonalization import orthogonalized
from tests.helpers.tiny import tiny_config

NUM_LAYERS = 3
SETTINGS = {"num_steps": 11, "warmup_steps": 3, "learning_rate": 0.05, "weight_decay": 0.3}

# name: (shape, whether it is decayed, layer)
VARIABLES = {
    "xlnet_encoder/word_embedding/embeddings": ([13, 5], True, 0),
    "xlnet_encoder/layer_0/attention/query_kernel": ([5, 2, 3], True, 1),
    "xlnet_encoder/layer_1/feed_forward/inner_bias": ([7], False, 2),
    "xlnet_encoder/layer_2/attention_norm/gamma": ([5], False, 3),
    "lm_head/bias": ([13], False, 3),
    "classifier/kernel": ([5, 3], True, 3),
}


def make_variables(seed=0):
    rng = np.random.default_rng(seed)
    return [
        tf.Variable(rng.standard_normal(shape).astype(np.float32), name=name)
        for name, (shape, _, _) in VARIABLES.items()
    ]


def make_gradients(step):
    rng = np.random.default_rng(100 + step)
    scale = 10.0 ** rng.integers(-3, 2)  # Some steps are clipped, some are not.
    return [scale * rng.standard_normal(shape) for shape, _, _ in VARIABLES.values()]


def wanted_rate(step, training):
    if step < training.warmup_steps:
        return training.learning_rate * step / training.warmup_steps
    done = (step - training.warmup_steps) / (training.num_steps - training.warmup_steps)
    fall = training.learning_rate - training.end_learning_rate
    return training.end_learning_rate + fall * (1 - min(done, 1)) ** training.decay_power


def numpy_adamw(training, steps):
    """Values after each step, in float64, from the equations of the docstring."""
    values = [variable.numpy().astype(np.float64) for variable in make_variables()]
    first = [np.zeros_like(value) for value in values]
    second = [np.zeros_like(value) for value in values]
    history = []
    for step in range(steps):
        gradients = make_gradients(step)
        if training.clip_norm:
            norm = np.sqrt(sum(np.sum(g**2) for g in gradients))
            gradients = [g * min(1, training.clip_norm / norm) for g in gradients]
        for i, (_, is_decayed, layer) in enumerate(VARIABLES.values()):
            b1, b2 = training.adam_beta_1, training.adam_beta_2
            first[i] = b1 * first[i] + (1 - b1) * gradients[i]
            second[i] = b2 * second[i] + (1 - b2) * gradients[i] ** 2
            m = first[i] / (1 - b1 ** (step + 1))
            v = second[i] / (1 - b2 ** (step + 1))
            above = NUM_LAYERS - layer if layer or training.decay_embedding else 0
            rate = wanted_rate(step, training) * training.layer_decay**above
            decay = training.weight_decay * is_decayed
            change = m / (np.sqrt(v) + training.adam_epsilon) + decay * values[i]
            values[i] = values[i] - rate * change
        history.append([value.copy() for value in values])
    return history


@pytest.mark.parametrize("graph", [False, True], ids=["eager", "graph"])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"clip_norm": 0.0, "adam_beta_1": 0.8, "adam_beta_2": 0.95, "adam_epsilon": 1e-3},
        {"layer_decay": 0.6},
        {"layer_decay": 0.6, "decay_embedding": False},
    ],
    ids=["default", "no clipping", "layer_decay", "layers only"],
)
def test_updates_are_those_of_adamw(changes, graph):
    training = TrainingConfig(**{**SETTINGS, **changes})
    optimizer = create_optimizer(training, NUM_LAYERS)
    variables = make_variables()
    optimizer.build(variables)

    def update(gradients):
        optimizer.apply_gradients(zip(gradients, variables, strict=True))

    apply = tf.function(update) if graph else update
    for step, wanted in enumerate(numpy_adamw(training, steps=7)):
        apply([tf.constant(gradient, tf.float32) for gradient in make_gradients(step)])
        for variable, value in zip(variables, wanted, strict=True):
            np.testing.assert_allclose(variable, value, atol=1e-5, err_msg=variable.name)


@pytest.mark.parametrize("graph", [False, True], ids=["eager", "graph"])
def test_lamb_is_that_of_tf_models_official(graph):
    training = TrainingConfig(**SETTINGS, optimizer="lamb", adam_beta_2=0.95)
    ours, theirs = make_variables(), make_variables()
    for variables in (ours, theirs):
        variables[-1].assign(tf.zeros_like(variables[-1]))  # Weights without a size.
    optimizer = create_optimizer(training, NUM_LAYERS)
    optimizer.build(ours)
    reference = lamb.LAMB(
        optimizer._learning_rate,
        training.adam_beta_1,
        training.adam_beta_2,
        training.adam_epsilon,
        training.weight_decay,
        exclude_from_weight_decay=["bias", "gamma", "beta"],
    )

    def update(gradients):
        optimizer.apply_gradients(zip(gradients, ours, strict=True))

    apply = tf.function(update) if graph else update
    for step in range(7):
        gradients = [tf.constant(gradient, tf.float32) for gradient in make_gradients(step)]
        apply(gradients)
        clipped, _ = tf.clip_by_global_norm(gradients, training.clip_norm)
        reference.apply_gradients(zip(clipped, theirs, strict=True))
        for variable, wanted in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(variable, wanted, atol=1e-5, err_msg=variable.name)


@pytest.mark.parametrize("graph", [False, True], ids=["eager", "graph"])
def test_muon_is_that_of_keras_3(graph):
    """For a kernel of heads, a tall and a wide matrix; all else is AdamW."""
    names = {
        "xlnet_encoder/layer_0/attention/query_kernel": [7, 2, 5],
        "xlnet_encoder/layer_1/feed_forward/inner_kernel": [5, 11],
        "xlnet_encoder/shared_layer/feed_forward/outer_kernel": [13, 3],
        "xlnet_encoder/layer_1/feed_forward/inner_bias": [11],
        "xlnet_encoder/word_embedding/embeddings": [13, 5],
        "next_sentence/kernel": [5],
    }
    changes = {"clip_norm": 0.0, "muon_scale": 0.3, "weight_decay": 0.1, "adam_beta_2": 0.9}
    training = TrainingConfig(**{**SETTINGS, **changes}, optimizer="muon")
    adamw = TrainingConfig(**{**SETTINGS, **changes})
    rng = np.random.default_rng(0)
    values = [rng.standard_normal(shape).astype(np.float32) for shape in names.values()]
    ours, as_adamw = (
        [tf.Variable(value, name=name) for name, value in zip(names, values, strict=True)]
        for _ in range(2)
    )
    theirs = [keras.Variable(value.reshape(len(value), -1)) for value in values[:3]]
    peer = keras.optimizers.Muon(0.0, weight_decay=0.1, rms_rate=0.3, momentum=0.95)
    peer.build(theirs)
    updates = [
        (create_optimizer(of, NUM_LAYERS), variables)
        for of, variables in ((training, ours), (adamw, as_adamw))
    ]
    for optimizer, variables in updates:
        optimizer.build(variables)
    apply = [optimizer.apply_gradients for optimizer, _ in updates]
    if graph:
        apply = [tf.function(function) for function in apply]
    for step in range(5):
        gradients = [rng.standard_normal(shape).astype(np.float32) for shape in names.values()]
        for function, (_, variables) in zip(apply, updates, strict=True):
            function([(tf.constant(g), v) for g, v in zip(gradients, variables, strict=True)])
        peer.learning_rate = wanted_rate(step, training)
        matrices = [gradient.reshape(len(gradient), -1) for gradient in gradients[:3]]
        peer.apply(matrices, theirs)
        for variable, other in zip(ours, theirs, strict=False):
            expected = np.array(other).reshape(variable.shape)
            np.testing.assert_allclose(variable, expected, rtol=1e-4, atol=1e-5)
        for variable, other in zip(ours[3:], as_adamw[3:], strict=True):
            np.testing.assert_array_equal(variable, other)


@pytest.mark.parametrize("shape", [[31, 31], [13, 47], [47, 13]])
def test_orthogonalized_has_the_same_singular_vectors(shape):
    matrix = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    left, _, right = np.linalg.svd(matrix, full_matrices=False)
    found = orthogonalized(tf.constant(matrix)).numpy()
    inner = left.T @ found @ right.T
    assert np.abs(inner - np.diag(np.diag(inner))).max() < 1e-3
    assert (np.diag(inner) > 0.6).all()
    assert (np.diag(inner) < 1.3).all()
    assert not orthogonalized(tf.zeros(shape)).numpy().any()


def test_lamb_has_layer_wise_rates_and_is_not_changed_by_a_bad_gradient():
    settings = {**SETTINGS, "warmup_steps": 0, "optimizer": "lamb"}
    plain, decayed = make_variables(), make_variables()
    before = [variable.numpy() for variable in plain]
    gradients = [tf.constant(gradient, tf.float32) for gradient in make_gradients(0)]
    for variables, alpha in ((plain, 1.0), (decayed, 0.6)):
        optimizer = create_optimizer(TrainingConfig(**settings, layer_decay=alpha), NUM_LAYERS)
        optimizer.apply_gradients(zip(gradients, variables, strict=True))
        after = [variable.numpy() for variable in variables]
        moments = [variable.numpy() for variable in optimizer.variables[2:]]
        bad = [*gradients[:-1], gradients[-1] * np.nan]
        optimizer.apply_gradients(zip(bad, variables, strict=True))
        for variable, wanted in zip(variables, after, strict=True):
            np.testing.assert_array_equal(variable, wanted)
        for variable, wanted in zip(optimizer.variables[2:], moments, strict=True):
            np.testing.assert_array_equal(variable, wanted)
    for start, full, part in zip(before, plain, decayed, strict=True):
        scale = 0.6 ** (NUM_LAYERS - layer_of(full.name, NUM_LAYERS))
        np.testing.assert_allclose(part - start, scale * (full - start), atol=1e-6)


def test_sparse_gradients_are_clipped_and_applied_as_dense_ones():
    """A tied embedding's gradient comes in slices, with the same row more than once."""
    rows, rng = [3, 1, 3, 3], np.random.default_rng(0)
    slices = [rng.standard_normal((4, 5)).astype(np.float32) for _ in range(3)]
    results = []
    for is_sparse in (True, False):
        optimizer = create_optimizer(TrainingConfig(**SETTINGS), NUM_LAYERS)
        variable = tf.Variable(tf.ones([7, 5]), name="word_embedding")
        for values in slices:
            gradient = tf.IndexedSlices(tf.constant(values), tf.constant(rows), tf.constant([7, 5]))
            gradient = gradient if is_sparse else tf.convert_to_tensor(gradient)
            optimizer.apply_gradients([(gradient, variable)])
        moment = next(v for v in optimizer.variables if v.name.endswith("word_embedding:0"))
        results.append((variable.numpy(), moment.numpy()))
    for sparse, dense in zip(*results, strict=True):
        np.testing.assert_allclose(sparse, dense, atol=1e-6)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"warmup_steps": 0},
        {"decay_power": 2.0, "end_learning_rate": 0.01},
        {"warmup_steps": 11},
    ],
    ids=["default", "no warm-up", "square", "warm-up only"],
)
def test_schedule(changes):
    training = TrainingConfig(**{**SETTINGS, **changes})
    schedule = create_optimizer(training, NUM_LAYERS)._learning_rate
    steps = training.num_steps + (training.warmup_steps < training.num_steps)
    got = [float(schedule(step)) for step in range(steps)]
    wanted = [wanted_rate(step, training) for step in range(steps)]
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-9)
    assert float(schedule(training.num_steps + 5)) == pytest.approx(training.end_learning_rate)


def block_variables(number, untie_r):
    """{path under the encoder: whether it is decayed} of one layer."""
    biases = ("content_bias", "position_bias", "segment_bias")
    kernels = ("query", "key", "value", "position", "output")
    return {
        **{f"layer_{number}/attention/{name}_kernel": True for name in kernels},
        f"layer_{number}/attention/segment_embedding": True,
        **{f"layer_{number}/attention/{name}": False for name in biases if untie_r},
        f"layer_{number}/attention_norm/gamma": False,
        f"layer_{number}/attention_norm/beta": False,
        f"layer_{number}/feed_forward/inner_kernel": True,
        f"layer_{number}/feed_forward/inner_bias": False,
        f"layer_{number}/feed_forward/outer_kernel": True,
        f"layer_{number}/feed_forward/outer_bias": False,
        f"layer_{number}/feed_forward_norm/gamma": False,
        f"layer_{number}/feed_forward_norm/beta": False,
    }


@pytest.mark.parametrize("untie_r", [True, False])
def test_decay_and_layer_of_every_variable(untie_r):
    """The names are those that checkpoints and exclusions rely on: all of them, written out."""
    num_layers = 11
    config = tiny_config(num_layers=num_layers, untie_r=untie_r, d_model=4, d_inner=3)
    model = XLNetPretrainer(config)
    optimizer = create_optimizer(config.training, num_layers)
    optimizer.build(model.trainable_variables)
    decayed = {"word_embedding/embeddings": True, "mask_embedding": True}
    layers = dict.fromkeys(decayed, 0)
    for number in range(num_layers):
        decayed.update(block_variables(number, untie_r))
        layers.update(dict.fromkeys(block_variables(number, untie_r), number + 1))
    if not untie_r:
        shared = [f"shared_biases/{name}_bias" for name in ("content", "position", "segment")]
        decayed.update(dict.fromkeys(shared, False))
        layers.update(dict.fromkeys(shared, num_layers))
    prefix = "xlnet_encoder/"
    wanted = {prefix + name: (decayed[name], layers[name]) for name in decayed}
    wanted["lm_head/bias"] = (False, num_layers)
    got = {
        variable.name.removesuffix(":0"): (
            optimizer._use_weight_decay(variable),
            layer_of(variable.name, num_layers),
        )
        for variable in model.trainable_variables
    }
    assert got == wanted
    assert len(model.trainable_variables) == len(wanted)


def test_layer_decay_scales_the_update_and_not_the_gradient():
    """As one optimizer for each layer, each with its own learning rate."""
    settings = {**SETTINGS, "clip_norm": 0.0, "warmup_steps": 0}
    together = make_variables()
    optimizer = create_optimizer(TrainingConfig(**settings, layer_decay=0.6), NUM_LAYERS)
    apart = make_variables()
    optimizers = []
    for variable in apart:
        distance = NUM_LAYERS - layer_of(variable.name, NUM_LAYERS)
        own = {**settings, "learning_rate": settings["learning_rate"] * 0.6**distance}
        optimizers.append(create_optimizer(TrainingConfig(**own), NUM_LAYERS))
    for step in range(5):
        gradients = [tf.constant(gradient, tf.float32) for gradient in make_gradients(step)]
        optimizer.apply_gradients(zip(gradients, together, strict=True))
        for own, gradient, variable in zip(optimizers, gradients, apart, strict=True):
            own.apply_gradients([(gradient, variable)])
    for variable, wanted in zip(together, apart, strict=True):
        np.testing.assert_allclose(variable, wanted, atol=1e-6)
