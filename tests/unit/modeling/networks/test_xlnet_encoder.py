"""The encoder as a Keras user has it: what it takes, returns, refuses, and in whose model it is."""

import itertools

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from official.xlnet.modeling.networks.xlnet_encoder import XLNetEncoder
from tests.helpers.tiny import (
    BATCH,
    LAYERS,
    MEMORY,
    TOKENS,
    WIDTH,
    random_inputs,
    tiny_config,
    tiny_encoder,
)


def as_perm_mask(inputs):
    """The same inputs with their order as a mask; what the diagonal says does not matter."""
    inputs = dict(inputs)
    order = inputs.pop("order")
    perm_mask = order[:, None, :] > order[:, :, None]
    # Targets of one order do not see each other.
    is_target = np.any(inputs["target_positions"][..., None] == np.arange(TOKENS), axis=1)
    assert np.all(np.diff(np.sort(order[is_target])) >= 0)
    return {**inputs, "perm_mask": perm_mask}


@pytest.mark.parametrize(("graph", "attention_type"), [(False, "uni"), (True, "bi")])
def test_perm_mask_gives_the_outputs_and_gradients_of_its_order(graph, attention_type):
    encoder = tiny_encoder(attention_type=attention_type, dropout=0.1, dropatt=0.1)
    # Every token has a place of its own, so a query sees what its content row sees, less itself.
    inputs = random_inputs(3, order="all", memory=MEMORY, padding=True, directions=True)
    inputs["dropout_seed"] = np.array([3, 4])

    def run(inputs):
        with tf.GradientTape() as tape:
            outputs = encoder(inputs, training=True)
            loss = tf.reduce_sum(tf.sin(outputs["content"]))
            loss += tf.reduce_sum(tf.cos(outputs["query"]))
        return outputs, tape.gradient(loss, encoder.trainable_variables)

    call = tf.function(run) if graph else run
    (wanted, wanted_gradients), (found, gradients) = call(inputs), call(as_perm_mask(inputs))
    for name in wanted:
        np.testing.assert_allclose(found[name], wanted[name], atol=1e-6, err_msg=name)
    for ours, theirs in zip(gradients, wanted_gradients, strict=True):
        ours, theirs = tf.convert_to_tensor(ours), tf.convert_to_tensor(theirs)
        np.testing.assert_allclose(ours, theirs, atol=2e-5)


def test_a_target_never_sees_itself():
    """Whatever the mask says: here, that everybody sees everything."""
    encoder = tiny_encoder()
    inputs = random_inputs(0, order="targets")
    inputs.pop("order")
    inputs["perm_mask"] = np.zeros([BATCH, TOKENS, TOKENS], bool)
    inputs["target_positions"] = inputs["target_positions"][:, :1]
    before = encoder(inputs)["query"]
    rows, target = np.arange(BATCH), inputs["target_positions"][:, 0]
    other = {**inputs, "token_ids": inputs["token_ids"].copy()}
    other["token_ids"][rows, target] = 10 + (other["token_ids"][rows, target] - 9) % 40
    # In one layer the token itself is hidden; in more it comes back through the others.
    shallow = tiny_encoder(num_layers=1)
    np.testing.assert_array_equal(shallow(other)["query"], shallow(inputs)["query"])
    changed = {**inputs, "token_ids": inputs["token_ids"].copy()}
    changed["token_ids"][rows, (target + 1) % TOKENS] = 9
    assert np.abs(encoder(changed)["query"] - before).max() > 1e-4


def test_hidden_states():
    encoder = tiny_encoder()
    inputs = random_inputs(1, memory=MEMORY, padding=True)
    outputs = encoder(inputs, return_hidden_states=True)
    hidden = outputs["hidden_states"]
    assert hidden.shape == [LAYERS + 1, BATCH, TOKENS, WIDTH]
    np.testing.assert_array_equal(hidden[-1], outputs["content"])
    np.testing.assert_array_equal(
        hidden[0], tf.gather(encoder.word_embedding.embeddings, inputs["token_ids"])
    )
    # The memory holds the inputs of the layers.
    reused = encoder.reuse_len
    np.testing.assert_array_equal(outputs["memory"][:, :, -reused:], hidden[:-1, :, :reused])


def plain_scores(encoder, block, hidden_BTD, memory_BMD, inputs):
    """softmax of the score of appendix A.2, written out pair by pair in float64."""
    attention = block.attention
    biases = encoder.shared_biases or attention.biases
    content_bias, position_bias, segment_bias = (
        x.numpy().astype(np.float64) for x in (biases.content, biases.position, biases.segment)
    )
    keys_BKD = np.concatenate([memory_BMD, hidden_BTD], axis=1).astype(np.float64)
    q = np.einsum("btd,dnh->btnh", hidden_BTD, attention.query_kernel)
    k = np.einsum("bkd,dnh->bknh", keys_BKD, attention.key_kernel)
    num_memory = memory_BMD.shape[1]
    frequency = 10000.0 ** (-np.arange(0, WIDTH, 2) / WIDTH)
    p = np.zeros([BATCH, 2, TOKENS, num_memory + TOKENS])
    for b, i in itertools.product(range(BATCH), range(TOKENS)):
        for j in range(num_memory + TOKENS):
            at = j - num_memory
            if at >= 0 and (inputs["order"][b, at] > inputs["order"][b, i]):
                continue
            if at >= 0 and inputs["is_padding"][b, at]:
                continue
            distance = (i - at) * (-1 if inputs["is_reversed"][b] else 1)
            angle = distance * frequency
            r = np.concatenate([np.sin(angle), np.cos(angle)])
            r = np.einsum("d,dnh->nh", r, attention.position_kernel)
            segment = inputs["segment_ids"][b, at] if at >= 0 else 0
            seg = attention.segment_embedding.numpy()[int(segment != inputs["segment_ids"][b, i])]
            score = np.sum((q[b, i] + content_bias) * k[b, j], axis=-1)
            score += np.sum((q[b, i] + position_bias) * r, axis=-1)
            score += np.sum((q[b, i] + segment_bias) * seg, axis=-1)
            p[b, :, i, j] = np.exp(score / np.sqrt(attention.d_head))
    return p / np.maximum(p.sum(-1, keepdims=True), 1e-300)


@pytest.mark.parametrize("untie_r", [True, False])
def test_attention_scores(untie_r):
    encoder = tiny_encoder(untie_r=untie_r)
    inputs = random_inputs(2, memory=MEMORY, padding=True, directions=True, order="all")
    outputs = encoder(inputs, return_attention_scores=True, return_hidden_states=True)
    scores = outputs["attention_scores"]
    assert scores.shape == [LAYERS, BATCH, 2, TOKENS, MEMORY + TOKENS]
    assert scores.dtype == tf.float32
    is_real = ~inputs["is_padding"]
    for number, block in enumerate(encoder.blocks):
        hidden = outputs["hidden_states"][number].numpy()
        wanted = plain_scores(encoder, block, hidden, inputs["memory"][number], inputs)
        for b in range(BATCH):
            np.testing.assert_allclose(
                scores[number, b].numpy()[:, is_real[b]], wanted[b][:, is_real[b]], atol=1e-5
            )
    plain = encoder(inputs)
    np.testing.assert_allclose(outputs["content"], plain["content"], atol=1e-5)


def test_unknown_sizes_give_what_static_ones_give():
    encoder = tiny_encoder(clamp_len=5)
    traces = []

    @tf.function(
        input_signature=[
            {
                "token_ids": tf.TensorSpec([None, None], tf.int32),
                "segment_ids": tf.TensorSpec([None, None], tf.int32),
                "order": tf.TensorSpec([None, None], tf.int32),
                "target_positions": tf.TensorSpec([None, None], tf.int32),
                "memory": tf.TensorSpec([LAYERS, None, None, WIDTH], tf.float32),
                "is_padding": tf.TensorSpec([None, None], tf.bool),
                "is_reversed": tf.TensorSpec([None], tf.bool),
            }
        ]
    )
    def dynamic(inputs):
        traces.append(1)
        return encoder(inputs)

    rng = np.random.default_rng(0)
    for _ in range(12):
        batch, tokens = (int(x) for x in rng.integers([1, 8], [5, 23]))
        inputs = random_inputs(
            0, batch, tokens, memory=int(rng.integers(1, 9)), padding=True, directions=True
        )
        wanted, found = encoder(inputs), dynamic(inputs)
        for name in wanted:
            np.testing.assert_allclose(found[name], wanted[name], atol=2e-5, err_msg=name)
    assert len(traces) == 1


SMALL = {"num_layers": 1, "dropout": 0.1, "dropatt": 0.1, "mem_len": 0}


class Sentiment(tf_keras.Model):
    """What a user writes around the encoder."""

    def __init__(self, **settings):
        super().__init__()
        self.encoder = XLNetEncoder(tiny_config(**SMALL, **settings))
        self.logits = tf_keras.layers.Dense(3)

    def call(self, token_ids, training=None):
        return self.logits(self.encoder(token_ids, training=training)["content"][:, -1])


def functional(length, **settings):
    encoder = XLNetEncoder(tiny_config(**SMALL, **settings))
    token_ids = tf_keras.Input([length], dtype=tf.int32)
    logits = tf_keras.layers.Dense(3)(encoder(token_ids)["content"][:, -1])
    return tf_keras.Model(token_ids, logits)


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [
        lambda: functional(TOKENS, recompute="block"),
        lambda: functional(None),
        Sentiment,
    ],
    ids=["functional", "any length", "subclassed"],
)
def test_fit_predict_and_save_a_model_around_the_encoder(make, tmp_path):
    """Default dropout, unknown batch size, a last partial batch."""
    tf_keras.utils.set_random_seed(1)
    model = make()
    rng = np.random.default_rng(0)
    token_ids = rng.integers(9, 50, [25, TOKENS]).astype(np.int32)
    labels = token_ids[:, -1] % 3
    model.compile(
        tf_keras.optimizers.Adam(0.01),
        tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    history = model.fit(token_ids, labels, batch_size=8, epochs=12, verbose=0).history
    assert history["loss"][-1] < 0.6 * history["loss"][0]
    predicted = model.predict(token_ids, batch_size=8, verbose=0)
    np.testing.assert_allclose(predicted, model(token_ids), atol=1e-5)
    path = str(tmp_path / "saved")
    model.save(path, save_format="tf")
    loaded = tf.saved_model.load(path)
    np.testing.assert_allclose(
        loaded.signatures["serving_default"](tf.constant(token_ids))[
            next(iter(loaded.signatures["serving_default"].structured_outputs))
        ],
        predicted,
        atol=1e-5,
    )


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (np.arange(5), r"expected the shape \[batch, tokens\], got \(5,\): .*token_ids\[None\]"),
        (np.zeros([2, 0], np.int32), r"at least one token, got the shape \(2, 0\)"),
        (np.zeros([2, 3], np.float32), "expected integers, got float32.*dtype=tf.int32"),
        (tf.ragged.constant([[9, 10], [11]]), r"got a ragged one: pad it with .to_tensor\(\)"),
        ({"order": np.zeros([2, 3], np.int32)}, "expected the encoder input 'token_ids'"),
        ({"token_ids": np.ones([2, 3], np.int32), "tokens": 1}, r"unknown encoder inputs"),
        (
            {
                "token_ids": np.ones([2, 3], np.int32),
                "order": np.ones([2, 3], np.int32),
                "perm_mask": np.zeros([2, 3, 3], bool),
            },
            "expected `order` or `perm_mask`, got both",
        ),
    ],
    ids=["one dimension", "no tokens", "floats", "ragged", "no ids", "unknown", "two orders"],
)
def test_wrong_inputs(inputs, message):
    with pytest.raises(ValueError, match=message):
        tiny_encoder()(inputs)
