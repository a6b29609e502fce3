"""Weights and gradients without a model, and what every registered optimizer does with them."""

import numpy as np
import tensorflow as tf

from official.xlnet.configs.training import TrainingConfig
from official.xlnet.training.optimization import create_optimizer
from tests.helpers.compare import assert_all_close, assert_all_equal, values

NUM_LAYERS = 3
SETTINGS = {"num_steps": 5, "warmup_steps": 3, "learning_rate": 0.05, "weight_decay": 0.3}
CALM = {**SETTINGS, "warmup_steps": 0, "num_steps": 1000}

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
    pairs = zip([*arrays(0)[:-1], np.zeros([5, 3])], VARIABLES, strict=True)
    return [tf.Variable(value, name=name, dtype=tf.float32) for value, name in pairs]


def gradients_of(step):
    """Norms of about 160, 0.02 and 2, beside a `clip_norm` of 1: the second is not clipped."""
    return arrays(100 + step, scale=(10.0, 0.001, 0.1)[step % 3])


def updated(settings, steps, make=None, restored=None):
    """Weights and their optimizer after some steps, and where they can be saved."""
    optimizer = create_optimizer(TrainingConfig.create(**settings), NUM_LAYERS)
    variables = make_variables()
    optimizer.build(variables)
    checkpoint = tf.train.Checkpoint(optimizer=optimizer, variables=variables)
    if restored:
        checkpoint.read(restored).assert_consumed()
    for step in steps:
        gradients = (make or gradients_of)(step)
        gradients = [g if tf.is_tensor(g) else tf.constant(g, tf.float32) for g in gradients]
        optimizer.apply_gradients(zip(gradients, variables, strict=True))
    return variables, optimizer, checkpoint


def check_optimizer(name, directory):
    """Raises `AssertionError` unless a registered optimizer does what all of them have to do."""
    calm = {**CALM, "optimizer": name}
    # The loss Σ w² falls, by a gradient of its own at each step.
    variables = make_variables()
    training = TrainingConfig.create(**{**calm, "weight_decay": 0.0, "layer_decay": 0.99})
    optimizer = create_optimizer(training, NUM_LAYERS)
    losses = []
    for _ in range(50):
        losses.append(sum(np.sum(value**2) for value in values(variables)))
        optimizer.apply_gradients([(2 * variable, variable) for variable in variables])
    assert losses[-1] < 0.5 * losses[0], (
        f"{name}: in 50 steps with the gradient of Σ w², it should fall by half, and went from "
        f"{losses[0]:.3g} to {losses[-1]:.3g}: is `update_step` right?"
    )

    before = values(make_variables())

    def change(**settings):
        variables, _, _ = updated({**calm, **settings}, [0])
        return [after - start for after, start in zip(values(variables), before, strict=True)]

    plain = change(weight_decay=0.0)
    # Biases and layer normalization are not decayed, all others are.
    for key, found, wanted in zip(VARIABLES, change(), plain, strict=True):
        is_changed = VARIABLES[key][1] and key != "classifier/kernel"  # Which is 0.
        is_decayed = np.any(found != wanted)
        expected = "with" if is_changed else "without"
        about = f"{name}: expected {key} {expected} weight decay: apply it where `is_decayed` says"
        assert is_decayed == is_changed, about
    # Layer-wise decay scales what a variable is changed by.
    powers = [NUM_LAYERS - layer for _, _, layer in VARIABLES.values()]
    scaled = change(weight_decay=0.0, layer_decay=0.5)
    for key, found, whole, power in zip(VARIABLES, scaled, plain, powers, strict=True):
        wanted = 0.5**power * whole
        about = f"{name}: expected {key} with the learning rate of its layer: use `rate_of`"
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-6, err_msg=about)
    scaled = change(weight_decay=0.0, layer_decay=0.5, decay_embedding=False)
    np.testing.assert_allclose(scaled[0], plain[0], rtol=1e-5, atol=1e-7)
    # A gradient that is not finite, or gradients that are all zero, change no weight and moment.
    for factor in (np.nan, np.inf, 0.0):
        for clip_norm in (0.0, 1.0):
            scales = [float(factor != 0)] * (len(VARIABLES) - 1) + [factor]
            of_steps = [gradients_of(1), [s * g for s, g in zip(scales, arrays(9), strict=True)]]
            settings = {**calm, "clip_norm": clip_norm}
            found = [updated(settings, range(n), of_steps.__getitem__)[:2] for n in (1, 2)]
            states = [values([*some, *optimizer.variables[2:]]) for some, optimizer in found]
            about = (
                f"{name}: with gradients times {factor}, expected that no weight and no "
                "moment changes: use the numbers of `step`, which are neutral then, and `clipped`"
            )
            assert_all_equal(*states, about)
    # A tied embedding's gradient comes in slices, with the same row more than once.
    rows = np.array([3, 1, 3, 3])

    def in_slices(step):
        some = np.random.default_rng(step).standard_normal((4, 5)).astype(np.float32)
        slices = tf.IndexedSlices(tf.constant(some), tf.constant(rows), tf.constant([13, 5]))
        return [slices, *gradients_of(step)[1:]]

    def dense(step):
        first, *others = in_slices(step)
        return [tf.convert_to_tensor(first), *others]

    found = [updated(calm, range(3), make)[0] for make in (in_slices, dense)]
    about = f"{name}: expected the same from a gradient in slices, some of them of the same row"
    assert_all_close(*map(values, found), rtol=1e-5, atol=1e-6, about=about)
    # Restored in the middle of its schedule, to the bit.
    settings = {**SETTINGS, "num_steps": 9, "schedule": "cosine", "optimizer": name}
    whole, _, _ = updated(settings, range(7))
    path = updated(settings, range(4))[2].write(str(directory / "checkpoint"))
    resumed, _, _ = updated(settings, range(4, 7), restored=path)
    about = (
        f"{name}: expected the same weights after it is saved and restored: is all its state in "
        "`moments`, or added by `add_variable_from_reference` in `build`?"
    )
    assert_all_equal(values(resumed), values(whole), about)
    again = type(optimizer).from_config(optimizer.get_config())  # Which changes it.
    about = f"{name}: expected each argument of the constructor in `get_config`"
    assert again.get_config() == optimizer.get_config() and again.layer_decay == 0.99, about
