"""What must hold for every model, text and order: who can know what, and nothing else matters."""

import numpy as np
import pytest
import tensorflow as tf

from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
from tests.helpers.tiny import (
    BATCH,
    LAYERS,
    MEMORY,
    TOKENS,
    WIDTH,
    random_inputs,
    randomize,
    tiny_config,
    tiny_encoder,
)

SEEDS = range(3)
FAST_SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))]
CLOSE = {"atol": 2e-5, "rtol": 1e-5}


@pytest.fixture(scope="module")
def encoder():
    """Remembers everything: `reuse_len` 0."""
    return tiny_encoder(reuse_len=0)


def run(encoder, inputs):
    return {name: value.numpy() for name, value in encoder(inputs).items()}


def row_of(inputs, row):
    """The inputs of one row, as a batch of its own."""
    return {
        name: value[:, row : row + 1] if name == "memory" else value[row : row + 1]
        for name, value in inputs.items()
    }


def test_rows_are_independent(encoder):
    inputs = random_inputs(1, memory=MEMORY, padding=True, directions=True)
    inputs["memory_length"] = np.random.default_rng(1).integers(0, MEMORY + 1, BATCH)
    whole = run(encoder, inputs)
    for row in range(BATCH):
        alone = run(encoder, row_of(inputs, row))
        for name, value in row_of(whole, row).items():
            np.testing.assert_allclose(alone[name], value, **CLOSE)


@pytest.mark.parametrize("seed", SEEDS)
def test_memory_length_shows_the_newest_columns_only(encoder, seed):
    """None of the memory of another document, which has length 0, as without a memory."""
    lengths = np.append(np.random.default_rng(seed).permutation(MEMORY - 1)[: BATCH - 1] + 1, 0)
    inputs = random_inputs(seed, memory=MEMORY, order="all") | {"memory_length": lengths}
    got = run(encoder, inputs)
    is_old = np.arange(MEMORY) < (MEMORY - lengths)[:, None]
    memory = np.where(is_old[None, :, :, None], 1e4, inputs["memory"]).astype(np.float32)
    other = run(encoder, {**inputs, "memory": memory})
    for name in ("content", "query"):
        np.testing.assert_array_equal(other[name], got[name])
    without = run(encoder, {name: value for name, value in inputs.items() if "memory" not in name})
    np.testing.assert_allclose(got["query"][-1], without["query"][-1], **CLOSE)
    longer = run(encoder, {**inputs, "memory_length": lengths + 1})
    assert np.all(np.abs(longer["content"] - got["content"]).max(axis=(1, 2)) > 1e-6)


@pytest.mark.parametrize("seed", SEEDS)
def test_reversed_rows_read_the_mirror_image(encoder, seed):
    """Text backwards, and told so, gives the outputs of the text forwards, backwards."""
    inputs = random_inputs(seed, order="all")
    mirrored = {name: inputs[name][:, ::-1] for name in ("token_ids", "segment_ids", "order")}
    mirrored["target_positions"] = TOKENS - 1 - inputs["target_positions"]
    mirrored["is_reversed"] = np.ones(BATCH, bool)
    forward, backward = run(encoder, inputs), run(encoder, mirrored)
    np.testing.assert_allclose(backward["content"][:, ::-1], forward["content"], **CLOSE)
    np.testing.assert_allclose(backward["query"], forward["query"], **CLOSE)
    ignored = run(encoder, {**mirrored, "is_reversed": np.zeros(BATCH, bool)})
    assert np.abs(ignored["query"] - forward["query"]).max() > 1e-3


@pytest.mark.parametrize("seed", range(3))
def test_windows_with_memory_equal_one_long_window(seed):
    """In causal order, with memory for everything: the recurrence loses nothing.

    Segments are all 0, as memory is.
    """
    size, windows = 5, 3
    encoder = tiny_encoder(seed, reuse_len=0, mem_len=2 * size, clamp_len=11)
    inputs = random_inputs(seed, tokens=size * windows)
    tokens = inputs["token_ids"]
    is_reversed = np.array([False, True, False])
    everywhere = np.tile(np.arange(size * windows), [BATCH, 1])
    long = run(
        encoder,
        {
            "token_ids": tokens,
            "order": everywhere,
            "target_positions": everywhere,
            "is_reversed": is_reversed,
        },
    )
    memory = np.zeros([LAYERS, BATCH, 2 * size, WIDTH], np.float32)
    for number in range(windows):
        part = slice(number * size, (number + 1) * size)
        out = run(
            encoder,
            {
                "token_ids": tokens[:, part],
                "order": everywhere[:, :size],
                "target_positions": everywhere[:, :size],
                "is_reversed": is_reversed,
                "memory": memory,
                "memory_length": np.full(BATCH, number * size),
            },
        )
        memory = out["memory"]
        np.testing.assert_allclose(out["content"], long["content"][:, part], **CLOSE)
        np.testing.assert_allclose(out["query"], long["query"][:, part], **CLOSE)


def test_no_gradient_flows_into_memory(encoder):
    inputs = random_inputs(0, memory=MEMORY)
    memory = tf.constant(inputs["memory"])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(memory)
        outputs = encoder({**inputs, "memory": memory})
    assert tape.gradient(outputs["query"], memory) is None
    assert tape.gradient(outputs["memory"], encoder.trainable_variables) == [None] * len(
        encoder.trainable_variables
    )


@pytest.fixture(scope="module")
def language_model():
    model = XLNetPretrainer(tiny_config(vocab_size=10, mem_len=0))
    randomize(model.trainable_variables, seed=7)
    return model


def log_probabilities(model, inputs, token_ids):
    """log p that the model gives to these tokens at each target, [B, P]."""
    labels = np.take_along_axis(token_ids, inputs["target_positions"], axis=1)
    log_p = tf.nn.log_softmax(model(inputs)["logits"]).numpy()
    return np.take_along_axis(log_p, labels[..., None], axis=-1)[..., 0]


@pytest.mark.parametrize("seed", FAST_SEEDS)
def test_product_of_conditionals_one_target_at_a_time(language_model, seed):
    """One pass over all targets equals T passes that do not know the later tokens."""
    rng = np.random.default_rng(seed)
    order = np.array([rng.permutation(TOKENS) for _ in range(BATCH)])
    inputs = {
        "token_ids": rng.integers(0, 10, [BATCH, TOKENS]),
        "order": order,
        "target_positions": np.tile(np.arange(TOKENS), [BATCH, 1]),
    }
    tokens = inputs["token_ids"]
    together = log_probabilities(language_model, inputs, tokens).sum(axis=1)
    one_by_one = np.zeros(BATCH)
    for step in range(TOKENS):
        unknown = rng.integers(0, 10, [BATCH, TOKENS])
        inputs["token_ids"] = np.where(order < step, tokens, unknown)
        inputs["target_positions"] = np.argmax(order == step, axis=1)[:, None]
        one_by_one += log_probabilities(language_model, inputs, tokens)[:, 0]
    np.testing.assert_allclose(together, one_by_one, atol=1e-4)


def test_target_that_may_see_nothing_knows_nothing(language_model):
    inputs = random_inputs(0, order="all")
    inputs["token_ids"] %= 10
    inputs["target_positions"] = np.argmin(inputs["order"], axis=1)[:, None]
    with tf.GradientTape() as tape:
        logits = language_model(inputs)["logits"]
    gradients = tape.gradient(logits, language_model.trainable_variables)
    assert all(np.all(np.isfinite(tf.convert_to_tensor(g))) for g in gradients)
    np.testing.assert_allclose(logits, np.broadcast_to(logits[:1], logits.shape), atol=1e-6)
