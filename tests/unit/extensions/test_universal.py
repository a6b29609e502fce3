"""Depths of the encoder: NumPy's halting, shared against stacked blocks, costs and counts."""

import functools

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from official.xlnet.extensions.universal.adaptive_depth import AdaptiveDepth
from official.xlnet.inference.cached_decoding import prefill
from official.xlnet.inference.network.inference_encoder import InferenceEncoder, last_positions
from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
from official.xlnet.modeling.networks.xlnet_encoder import XLNetEncoder
from official.xlnet.training.optimization import create_optimizer
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
from tests.unit.extensions.halting import vary_halting

STEPS = 5
ROWS = TOKENS + TARGETS


def adaptive_encoder(seed=0, **changes):
    """Rows halt after different numbers of steps."""
    encoder = tiny_encoder(seed, num_layers=STEPS, depth="adaptive", **changes)
    vary_halting(encoder.depth, STEPS, seed)
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


def random_step(width, seed):
    """Blocks without attention: each row goes its own way."""
    rng = np.random.default_rng(seed)
    kernels = rng.standard_normal([STEPS, width, width]).astype(np.float32)
    return lambda number, x: np.tanh(x @ kernels[number])


def test_halting_equals_that_by_hand():
    rng = np.random.default_rng(5)
    hidden = rng.standard_normal([BATCH, ROWS, WIDTH]).astype(np.float32)
    depth = AdaptiveDepth(threshold=0.8, ponder_weight=0.3)
    depth.build([None, None, WIDTH])
    depth.halting_kernel.assign(rng.standard_normal(WIDTH) * 0.4)
    depth.halting_bias.assign(-1.2)
    step = random_step(WIDTH, 6)
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

    def run(encoder):
        with tf.GradientTape() as tape:
            outputs = encoder(inputs, training=True)
            loss = tf.reduce_sum(tf.sin(outputs["content"])) + tf.reduce_sum(outputs["query"][0])
        return outputs, tape, loss

    (outputs, tape, loss), (expected, stacked_tape, stacked_loss) = run(shared), run(stacked)
    for name in ("content", "query", "memory"):
        np.testing.assert_allclose(outputs[name], expected[name], atol=1e-6)
    gradients = tape.gradient(loss, shared.blocks[0].trainable_variables)
    of_blocks = stacked_tape.gradient(
        stacked_loss, [block.trainable_variables for block in stacked.blocks]
    )
    for gradient, each in zip(gradients, zip(*of_blocks, strict=True), strict=True):
        np.testing.assert_allclose(gradient, tf.add_n(each), atol=2e-4, rtol=1e-3)


def test_padding_rows_and_hidden_tokens_change_nothing():
    encoder = adaptive_encoder(3)
    inputs = random_inputs(3, padding=True, layers=STEPS)
    before = encoder(inputs, return_num_steps=True)
    assert len(set(before["num_steps"].numpy().flat)) > 1
    changed = {**inputs, "token_ids": np.where(inputs["is_padding"], 9, inputs["token_ids"])}
    after = encoder(changed, return_num_steps=True)
    np.testing.assert_allclose(after["query"], before["query"], atol=1e-6)
    is_real = ~inputs["is_padding"]
    for name in ("content", "num_steps"):
        np.testing.assert_allclose(after[name][is_real], before[name][is_real], atol=1e-6)
    # The last target of the order is seen by no one but itself.
    target = inputs["target_positions"][
        np.arange(BATCH)[:, None],
        np.argsort(np.take_along_axis(inputs["order"], inputs["target_positions"], 1), axis=1)[
            :, -1:
        ],
    ]
    changed["token_ids"] = inputs["token_ids"].copy()
    rows = np.arange(BATCH)[:, None]
    changed["token_ids"][rows, target] = 10 + (inputs["token_ids"][rows, target] - 9) % 40
    np.testing.assert_allclose(encoder(changed)["query"], before["query"], atol=1e-6)


def shared_encoder(seed=0):
    return tiny_encoder(seed, num_layers=STEPS, depth="shared")


@pytest.mark.parametrize("new_encoder", [shared_encoder, adaptive_encoder])
def test_the_inference_network_equals_the_layers(new_encoder):
    encoder = new_encoder(8)
    packed = InferenceEncoder(encoder, TOKENS + 2, with_memory=True)
    inputs = random_inputs(8, memory=MEMORY, padding=True, layers=STEPS, targets=1)
    inputs["memory_length"] = np.array([0, 3, MEMORY], np.int32)
    names = ("token_ids", "is_padding", "memory", "memory_length")
    given = {name: tf.constant(inputs[name]) for name in names}
    expected = encoder(given)
    found = packed(**given)
    is_real = ~inputs["is_padding"]
    np.testing.assert_allclose(
        found.vectors.numpy()[is_real], expected["content"].numpy()[is_real], atol=1e-5
    )
    last = packed(**given, last_only=True).vectors
    np.testing.assert_allclose(last[:, 0], expected["content"][:, -1], atol=1e-5)
    # Each token, given those before it in an order.
    order = tf.constant(np.random.default_rng(9).integers(0, 9, [BATCH, TOKENS]).astype(np.int32))
    positions = tf.constant(np.tile(np.arange(TOKENS - 4, TOKENS), [BATCH, 1]).astype(np.int32))
    expected = encoder({**given, "order": order, "target_positions": positions})["query"]
    last_four = last_positions(4, TOKENS)
    found = packed.in_order(order=order, target_positions=last_four, **given).vectors
    np.testing.assert_allclose(found, expected, atol=1e-5)
    # One block's weights are stored once.
    assert sum("positions" in variable.name for variable in packed.variables) == 1
    # The first layers alone.
    short = InferenceEncoder(encoder, TOKENS, num_layers=0)
    embeddings = tf.gather(encoder.word_embedding.embeddings, inputs["token_ids"])
    np.testing.assert_allclose(
        short(given["token_ids"], given["is_padding"]).vectors, embeddings, atol=1e-6
    )


@pytest.mark.slow
def test_exported_weights_are_those_of_halting_too(tmp_path):
    encoder = adaptive_encoder(12, mem_len=0)
    packed = InferenceEncoder(encoder, TOKENS)
    module = tf.Module()
    module.packed = packed
    module.run = tf.function(
        lambda token_ids, is_padding: packed(token_ids, is_padding, last_only=True).vectors,
        input_signature=[
            tf.TensorSpec([None, TOKENS], tf.int32),
            tf.TensorSpec([None, TOKENS], tf.bool),
        ],
        autograph=False,
    )
    tf.saved_model.save(module, str(tmp_path))
    inputs = random_inputs(12, padding=True, layers=STEPS)
    given = tf.constant(inputs["token_ids"]), tf.constant(inputs["is_padding"])
    loaded = tf.saved_model.load(str(tmp_path))  # Its variables live as long as it does.
    found = loaded.run(*given)[:, 0]
    expected = encoder({"token_ids": given[0], "is_padding": given[1]})["content"][:, -1]
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.slow
def test_decoding_caches_what_each_step_reads():
    encoder = adaptive_encoder(10, mem_len=0)
    token_ids = tf.constant(random_inputs(10, layers=STEPS)["token_ids"])
    order = tf.zeros([BATCH, TOKENS], tf.int32)
    caches = prefill(encoder, token_ids, order)
    inputs = encoder({"token_ids": token_ids}, return_hidden_states=True)["hidden_states"]
    kernel = encoder.blocks[0].attention.key_kernel
    assert len(caches) == STEPS
    for cache, hidden_BTD in zip(caches, inputs[:-1], strict=True):
        keys = tf.einsum("btd,dnh->bnth", hidden_BTD, kernel)
        found = tf.reshape(cache.keys, [-1])
        np.testing.assert_allclose(np.sort(found), np.sort(tf.reshape(keys, [-1])), atol=1e-5)


def model_with_cost(ponder_weight=0.01):
    """A causal model, which has one stream only, and rows that halt late."""
    changes = {"kind": "causal", "bidirectional": False, "mem_len": 0}
    changes |= {"depth": "adaptive", "num_layers": 2, "ponder_weight": ponder_weight}
    model = XLNetPretrainer(tiny_config(**changes))
    randomize(model.trainable_variables, 3)
    model.encoder.depth.halting_bias.assign(-2.0)
    return model


@functools.cache
def step_of_halting(ponder_weight, slices="accumulate_steps=1"):
    """What a step of plain descent adds to the bias of halting, and its loss."""
    model = model_with_cost(ponder_weight)
    model.config.set(slices)
    model.compile(tf_keras.optimizers.SGD(0.1))
    step = model.train_step
    if slices == "accumulate_steps=2":  # Slices one after the other are a loop of the graph.
        step = tf.function(step, autograph=False)
    loss = step(random_windows(3))["loss"].numpy()
    return model.encoder.depth.halting_bias.numpy() + 2.0, loss


@pytest.mark.slow
@pytest.mark.parametrize(
    "slices", ["accumulate_steps=1", "accumulate_steps=2", "parallel_slices=2"]
)
def test_a_step_descends_on_the_ponder_cost_once(slices):
    (without, plain), (whole, with_cost) = step_of_halting(0.0), step_of_halting(2.0, slices)
    np.testing.assert_allclose(with_cost, plain, rtol=1e-6)  # The loss is the objective's.
    model = model_with_cost()
    bias = model.encoder.depth.halting_bias
    batch = random_windows(3)
    with tf.GradientTape() as tape:
        model(model.make_permutation(batch).inputs, training=True)
        (cost,) = model.encoder.losses
    expected = -0.1 * 2.0 / 0.01 * tape.gradient(cost, bias)
    assert expected > 1e-3  # N falls as probabilities grow.
    np.testing.assert_allclose(whole - without, expected, rtol=0.03)


@pytest.mark.slow
def test_training_fits_a_batch():
    changes = {"kind": "causal", "bidirectional": False, "recompute": "block", "dropout": 0.1}
    config = tiny_config(depth="adaptive", num_layers=2, **changes)
    model = XLNetPretrainer(config)
    model.compile(create_optimizer(config.training, config.model.num_layers))
    data = tf.data.Dataset.from_tensors(random_windows(1)).repeat()
    losses = model.fit(data, epochs=30, steps_per_epoch=1, verbose=0).history["loss"]
    assert losses[-1] < 0.9 * losses[0]


@pytest.mark.parametrize("untie_r", [True, False])
@pytest.mark.parametrize("depth", ["stacked", "shared", "adaptive"])
def test_parameters_are_counted(depth, untie_r):
    config = tiny_config(depth=depth, num_layers=3, untie_r=untie_r)
    encoder = XLNetEncoder(config)
    encoder.build()
    counted = sum(variable.shape.num_elements() for variable in encoder.trainable_variables)
    assert config.model.num_parameters == counted == encoder.count_params()
    if depth != "stacked":
        assert len(encoder.trainable_variables) < len(tiny_encoder(num_layers=2).weights)
