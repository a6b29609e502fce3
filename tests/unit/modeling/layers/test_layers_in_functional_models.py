"""Each layer alone in a functional Keras model, with sizes that are unknown until it runs."""

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from official.xlnet.modeling.kernels.device_forms import built_for
from official.xlnet.modeling.layers.relative_attention import TwoStreamRelativeAttention
from official.xlnet.modeling.layers.relative_position import RelativePositionEncoding
from official.xlnet.modeling.layers.relative_segment import RelativeSegmentEncoding
from official.xlnet.modeling.layers.two_stream_mask import TwoStreamAttentionMask
from official.xlnet.modeling.layers.xlnet_block import XLNetBlock
from official.xlnet.modeling.ops.visibility import can_attend
from tests.helpers.tiny import randomize

HEADS, HEAD, WIDTH, TARGETS = 2, 5, 14, 3
SHAPES = [(2, 7), (3, 11), (2, 1)]  # Batch and tokens.


def values(batch, tokens, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "hidden_states": rng.standard_normal([batch, tokens + TARGETS, WIDTH]).astype(np.float32),
        "order": np.stack([rng.permutation(tokens) for _ in range(batch)]).astype(np.int32),
        "segment_ids": rng.integers(0, 3, [batch, tokens]).astype(np.int32),
        "memory": rng.standard_normal([batch, 4, WIDTH]).astype(np.float32),
        "target_positions": rng.integers(0, tokens, [batch, TARGETS]).astype(np.int32),
    }


def keras_inputs():
    def integers(name, size=None):
        return tf_keras.Input([size], dtype=tf.int32, name=name)

    return {
        "hidden_states": tf_keras.Input([None, WIDTH], name="hidden_states"),
        "order": integers("order"),
        "segment_ids": integers("segment_ids"),
        "memory": tf_keras.Input([None, WIDTH], name="memory"),
        "target_positions": integers("target_positions", TARGETS),
    }


def run_attention(layer, inputs, **arguments):
    mask = TwoStreamAttentionMask()(
        inputs["order"],
        order=inputs["order"],
        segment_ids=inputs["segment_ids"],
        memory=inputs["memory"],
        target_positions=inputs["target_positions"],
    )
    content = inputs["hidden_states"][:, :-TARGETS]
    encoding = RelativePositionEncoding()(content, memory=inputs["memory"])
    return layer(inputs["hidden_states"], mask, encoding, memory=inputs["memory"], **arguments)


def ranks_of_encoding(model):
    (layer,) = (x for x in model.layers if isinstance(x, RelativePositionEncoding))
    return [x.shape.rank for x in layer.output]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "with_graph"),
    [
        (lambda: TwoStreamRelativeAttention(HEADS, HEAD, dropatt=0.1), False),
        (lambda: XLNetBlock(HEADS, HEAD, 19, dropout=0.1, dropatt=0.1), True),
        (
            lambda: XLNetBlock(HEADS, HEAD, 19, attention_type="uni", recompute_attention=True),
            False,
        ),
    ],
    ids=["attention", "block", "uni block"],
)
def test_attention_and_block(make, with_graph, tmp_path):
    """Called, predicted with and loaded; `with_graph`: from a SavedModel too."""
    layer, inputs = make(), keras_inputs()
    output = run_attention(layer, inputs)
    assert output.shape.as_list() == [None, None, WIDTH]
    model = tf_keras.Model(inputs, output)
    randomize(layer.variables)
    path = str(tmp_path / "model.keras")
    model.save(path)
    loaded = tf_keras.models.load_model(path)
    with built_for("TPU"):  # Where relative positions have another form, and back again.
        on_a_tpu = tf_keras.models.load_model(path)
        on_a_tpu.save(path)
        if with_graph:
            on_a_tpu.save(str(tmp_path / "saved_model"))
    assert ranks_of_encoding(model) == [2, 2] and ranks_of_encoding(on_a_tpu) == [4, 3]
    graphs = [tf.saved_model.load(str(tmp_path / "saved_model"))] if with_graph else []
    back = tf_keras.models.load_model(path)
    for batch, tokens in SHAPES:
        given = values(batch, tokens)
        wanted = run_attention(layer, {name: tf.constant(x) for name, x in given.items()})
        assert wanted.shape == [batch, tokens + TARGETS, WIDTH]
        with built_for("TPU"):
            found_on_a_tpu = on_a_tpu(given)
        others = loaded(given), back(given), found_on_a_tpu, *(graph(given) for graph in graphs)
        for found in (model(given), model.predict(given, verbose=0), *others):
            np.testing.assert_allclose(found, wanted, atol=1e-5)


@pytest.mark.slow
def test_fit_with_dropout_unknown_batch_and_a_last_partial_batch():
    inputs = keras_inputs()
    block = XLNetBlock(HEADS, HEAD, 19, dropout=0.1, dropatt=0.1)
    output = run_attention(block, inputs)
    model = tf_keras.Model(inputs, tf_keras.layers.Dense(1)(output[:, -1]))
    model.compile("adam", "mse")
    given = values(7, 5)
    labels = given["hidden_states"][:, 0, :1]
    history = model.fit(given, labels, batch_size=3, epochs=40, verbose=0).history["loss"]
    assert np.all(np.isfinite(history)) and history[-1] < 0.5 * history[0]


def test_dropout_is_a_function_of_its_seed():
    layer = XLNetBlock(HEADS, HEAD, 19, dropout=0.3, dropatt=0.3)
    given = {name: tf.constant(x) for name, x in values(2, 7).items()}
    runs = [
        run_attention(layer, given, training=True, dropout_seed=seed)
        for seed in ([1, 2], [1, 2], [1, 3], None, None)
    ]
    np.testing.assert_array_equal(runs[0], runs[1])
    for one, other in ((1, 2), (2, 3), (3, 4)):
        assert np.abs(runs[one] - runs[other]).max() > 1e-3
    plain = [run_attention(layer, given, training=training) for training in (False, None)]
    np.testing.assert_array_equal(*plain)


def test_masks():
    inputs = keras_inputs()
    mask = TwoStreamAttentionMask()(
        inputs["order"], order=inputs["order"], target_positions=inputs["target_positions"]
    )
    model = tf_keras.Model([inputs["order"], inputs["target_positions"]], mask)
    given = values(3, 7)
    found = model([given["order"], given["target_positions"]])
    order = given["order"]
    np.testing.assert_array_equal(
        can_attend(found.content, found.keys, False), order[:, None] <= order[:, :, None]
    )
    target_order = np.take_along_axis(order, given["target_positions"], axis=1)
    np.testing.assert_array_equal(
        can_attend(found.query, found.keys, False), order[:, None] < target_order[:, :, None]
    )


def test_segment_encoding():
    """(q + r_s)·seg of another segment minus that of the same, over √H."""
    rng = np.random.default_rng(0)
    query = rng.standard_normal([3, HEADS, 7, HEAD]).astype(np.float32)
    bias = rng.standard_normal([HEADS, HEAD]).astype(np.float32)
    layer = RelativeSegmentEncoding(HEADS, HEAD, init_std=1.0)
    given = tf_keras.Input([HEADS, None, HEAD])
    model = tf_keras.Model(given, layer(given, bias))
    same, different = layer.segment_embedding.numpy()
    wanted = [np.einsum("bnxh,nh->bnx", query + bias[:, None], seg) for seg in (different, same)]
    wanted = (wanted[0] - wanted[1]) / np.sqrt(HEAD)
    assert layer.compute_output_shape(query.shape) == wanted.shape
    for training in (False, True):
        np.testing.assert_allclose(model(query, training=training), wanted, atol=1e-5)
