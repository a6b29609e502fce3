"""The lengths that inputs of an exported model are padded to."""

import numpy as np
import tensorflow as tf

from official.xlnet.inference.network import length_buckets
from official.xlnet.inference.network.length_buckets import default_lengths, in_buckets


def test_default_lengths_are_powers_of_two_and_the_longest():
    assert default_lengths(100) == (16, 32, 64, 100)
    assert default_lengths(128, shortest=20) == (32, 64, 128)
    assert default_lengths(5) == (5,)


def test_a_request_executes_the_branches_of_its_lengths_as_calls(monkeypatch):
    """Inlined, each branch would execute a `Switch` for each variable, taken or not."""
    monkeypatch.setattr(length_buckets, "_TOKENS_AT_ONCE", 9)
    factor = tf.Variable(3)

    def function(inputs):
        product_BT = factor * inputs["token_ids"]
        length_B = tf.fill([tf.shape(product_BT)[0]], product_BT.shape[1])
        return {"product": product_BT, "sum": tf.reduce_sum(product_BT, axis=1), "length": length_B}

    specs = {
        "token_ids": tf.TensorSpec([None, 7], tf.int32),
        "is_padding": tf.TensorSpec([None, 7], tf.bool),
    }
    whole = tf.function(in_buckets(function, (2, 3, 7), ("product",)), autograph=False)
    whole = whole.get_concrete_function(specs)
    needed = np.array([3, 1, 2, 2, 3, 1, 3, 2, 2])
    for number, most in ((9, 3), (2, 3), (0, 2)):
        ids = np.random.default_rng(1).integers(1, 90, [number, 7])
        is_padding = np.arange(7) < 7 - needed[:number, None]
        ids = tf.constant(np.where(is_padding, 0, ids), tf.int32)
        outputs = whole({"token_ids": ids, "is_padding": tf.constant(is_padding)})
        np.testing.assert_array_equal(outputs["product"], 3 * ids[:, -most:])
        np.testing.assert_array_equal(outputs["sum"], 3 * tf.reduce_sum(ids, axis=1))
        np.testing.assert_array_equal(outputs["length"], np.maximum(needed[:number], 2))
    functions = whole.graph.as_graph_def().library.function
    nodes = [node for function in functions for node in function.node_def if "If" in node.op]
    assert len(nodes) == 6  # Two of each length.
    assert not any(node.attr["_lower_using_switch_merge"].b for node in nodes)
