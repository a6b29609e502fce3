"""Depths of the encoder: NumPy's halting, shared against stacked blocks, costs and counts."""

import numpy as np
import pytest
import tensorflow as tf

from official.xlnet.inference.decoding.cached import prefill
from official.xlnet.inference.network.inference_encoder import InferenceEncoder
from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
from official.xlnet.modeling.ops.keras import keras
from official.xlnet.projects.survey.universal import AdaptiveDepth, step_encoding
from tests.helpers.compare import assert_all_close
from tests.helpers.tiny import (
    BATCH,
    MEMORY,
    TARGETS,
    TOKENS,
    WIDTH,
    random_inputs,
    random_windows,
    randomize,
    tiny_config,
    tiny_encoder,
)

STEPS = 5
ROWS = TOKENS + TARGETS


def vary_halting(depth, seed=0):
    """Weights with which rows halt after different numbers of steps."""
    rng = np.random.default_rng(seed)
    kernel = rng.standard_normal(WIDTH) / 2
    # What all rows have in common, the encoding of a step, has no say.
    encodings = np.stack([step_encoding(1 + n, WIDTH) for n in range(STEPS)], axis=1)
    kernel -= encodings @ np.linalg.lstsq(encodings, kernel, rcond=None)[0]
    depth.halting_kernel.assign(kernel)
    depth.halting_bias.assign(-0.7)


def depth_encoder(seed=0, depth="adaptive", **changes):
    encoder = tiny_encoder(seed, num_layers=STEPS, depth=depth, **changes)
    if depth == "adaptive":
        vary_halting(encoder.depth, seed)
    return encoder


def halting_by_hand(hidden, step, kernel, bias, threshold, num_steps):
    """Adaptive computation time of one row, as Graves writes it (sections 2 and 2.1)."""
    probabilities, states = [], []
    for number in range(num_steps):
        t = number + 1
        encoding = np.zeros_like(hidden)
        for j in range(len(hidden) // 2):
            encoding[2 * j] = np.sin(t / 10000 ** (2 * j / len(hidden)))
            encoding[2 * j + 1] = np.cos(t / 10000 ** (2 * j / len(hidden)))
        inputs = hidden + encoding
        probabilities.append(1 / (1 + np.exp(-(inputs @ kernel + bias))))
        hidden = step(number, inputs)
        states.append(hidden)
        if sum(probabilities) >= threshold:
            break
    count = len(states)
    remainder = 1 - sum(probabilities[:-1])
    output = sum(p * state for p, state in zip(probabilities[:-1], states[:-1], strict=True))
    return output + remainder * states[-1], count, count + remainder


def test_halting_equals_that_by_hand():
    rng = np.random.default_rng(5)
    hidden = rng.standard_normal([BATCH, ROWS, WIDTH]).astype(np.float32)
    depth = AdaptiveDepth(threshold=0.8, ponder_weight=0.3)
    depth.build([None, None, WIDTH])
    depth.halting_kernel.assign(rng.standard_normal(WIDTH) * 0.4)
    depth.halting_bias.assign(-1.2)
    kernels = rng.standard_normal([STEPS, WIDTH, WIDTH]).astype(np.float32)
    step = lambda number, x: np.tanh(x @ kernels[number])  # noqa: E731 (rows go their own way)
    is_padding = np.zeros([BATCH, TOKENS], bool)
    is_padding[0, :3] = is_padding[2, 1] = True

    outputs = depth(
        tf.constant(hidden),
        step=lambda number, x: tf.constant(step(number, x.numpy())),
        num_layers=STEPS,
        is_padding=tf.constant(is_padding),
        training=True,
    )

    kernel, bias = depth.halting_kernel.numpy(), depth.halting_bias.numpy()
    expected = [
        [halting_by_hand(row, step, kernel, bias, 0.8, STEPS) for row in rows] for rows in hidden
    ]
    counts = np.array([[count for _, count, _ in rows] for rows in expected])
    assert set(counts.flat) >= {1, 2, 3, STEPS}  # Also rows that the limit stops.
    np.testing.assert_array_equal(outputs.num_steps, counts)
    vectors = np.array([[output for output, _, _ in rows] for rows in expected])
    np.testing.assert_allclose(outputs.hidden_states, vectors, atol=1e-5)
    is_real = np.pad(~is_padding, [[0, 0], [0, TARGETS]], constant_values=True)
    ponder = np.array([[cost for _, _, cost in rows] for rows in expected])[is_real].mean()
    np.testing.assert_allclose(depth.losses, [0.3 * ponder], rtol=1e-5)


@pytest.mark.parametrize("untie_r", [True, False])
def test_a_shared_block_equals_stacked_blocks_with_its_weights(untie_r):
    """In both streams, with memory, reversed rows, padding and dropout; gradients add up."""
    changes = {"num_layers": STEPS, "dropout": 0.1, "dropatt": 0.1, "untie_r": untie_r}
    shared = tiny_encoder(1, depth="shared", step_encoding=False, **changes)
    stacked = tiny_encoder(2, **changes)
    for name in ("word_embedding", "shared_biases"):
        if getattr(shared, name) is not None:
            getattr(stacked, name).set_weights(getattr(shared, name).get_weights())
    stacked.mask_embedding.assign(shared.mask_embedding)
    for block in stacked.blocks:
        block.set_weights(shared.blocks[0].get_weights())
    assert len({id(block) for block in stacked.blocks}) == STEPS
    inputs = random_inputs(3, memory=MEMORY, padding=True, directions=True, layers=STEPS)
    inputs["dropout_seed"] = np.array([5, 7])
    found = []
    for encoder in (shared, stacked):
        with tf.GradientTape() as tape:
            outputs = encoder(inputs, training=True)
            loss = tf.reduce_sum(tf.sin(outputs["content"])) + tf.reduce_sum(outputs["query"][0])
        blocks = encoder.blocks if encoder is stacked else encoder.blocks[:1]
        gradients = tape.gradient(loss, [block.trainable_variables for block in blocks])
        found.append((outputs, [tf.add_n(each) for each in zip(*gradients, strict=True)]))
    (outputs, gradients), (expected, of_stacked) = found
    for name in ("content", "query", "memory"):
        np.testing.assert_allclose(outputs[name], expected[name], atol=1e-6)
    assert_all_close(gradients, of_stacked, atol=2e-4, rtol=1e-3)


def test_the_inference_network_stores_the_weights_of_one_block():
    """It equals the layers: tests/property/test_inference_network.py."""
    packed = InferenceEncoder(depth_encoder(8), TOKENS)
    assert sum("positions" in variable.name for variable in packed.variables) == 1


def test_decoding_caches_what_each_step_reads():
    encoder = depth_encoder(10, mem_len=0)
    token_ids = tf.constant(random_inputs(10, layers=STEPS)["token_ids"])
    caches = prefill(encoder, token_ids, tf.zeros([BATCH, TOKENS], tf.int32))
    inputs = encoder({"token_ids": token_ids}, return_hidden_states=True)["hidden_states"]
    for cache, hidden_BTD in zip(caches, inputs[:STEPS], strict=True):
        keys = tf.einsum("btd,dnh->bnth", hidden_BTD, encoder.blocks[0].attention.key_kernel)
        np.testing.assert_allclose(np.sort(cache.keys, None), np.sort(keys, None), atol=1e-5)


def step_of_halting(ponder_weight):
    """What a step of plain descent adds to the bias of halting; the cost's gradient; the loss."""
    changes = {"kind": "causal", "bidirectional": False, "mem_len": 0}  # One stream only.
    changes |= {"depth": "adaptive", "num_layers": 2, "ponder_weight": ponder_weight}
    model, batch = XLNetPretrainer(tiny_config(**changes)), random_windows(3)
    randomize(model.trainable_variables, 3)
    bias = model.encoder.depth.halting_bias
    bias.assign(-2.0)  # Rows halt late.
    with tf.GradientTape() as tape:
        model(model.make_permutation(batch).inputs, training=True)
        (cost,) = model.encoder.losses
    model.compile(keras.optimizers.SGD(0.1))
    loss = model.train_step(batch)["loss"].numpy()
    return bias.numpy() + 2.0, tape.gradient(cost, bias).numpy(), loss


def test_a_step_descends_on_the_ponder_cost_once():
    start, gradient, plain = step_of_halting(0.1)
    change, with_cost, loss = step_of_halting(2.0)
    np.testing.assert_allclose(loss, plain, rtol=1e-6)  # The loss is the objective's.
    expected = -0.1 * (with_cost - gradient)
    assert expected > 1e-3  # N falls as probabilities grow.
    np.testing.assert_allclose(change - start, expected, rtol=0.03)
