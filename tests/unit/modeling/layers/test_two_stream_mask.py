"""Masks written out, from orders and from permutation masks."""

import numpy as np
import pytest
import tensorflow as tf

from official.xlnet.modeling.layers.two_stream_mask import TwoStreamAttentionMask
from official.xlnet.modeling.ops.visibility import (
    ALWAYS_VISIBLE,
    NEVER_VISIBLE,
    Keys,
    OrderedRows,
    can_attend,
)
from tests.helpers.compare import assert_all_equal

# Orders of rows and keys, positions of rows, number of keys of the memory, and who attends to whom.
MASKS = {
    "content": ([0, 2, 0, 1], [0, 2, 0, 1], range(4), 0, ["1010", "1111", "1010", "1011"]),
    # Targets 1 and 3: their order minus 1; closed at the target itself.
    "query": ([1, 0], [0, 2, 0, 1], [1, 3], 0, ["1011", "1010"]),
    # Memory of another document, memory of this one, padding, then tokens of order 0 and 1.
    "memory and padding": (
        [0, 0, 1],
        [NEVER_VISIBLE, ALWAYS_VISIBLE, NEVER_VISIBLE, 0, 1],
        range(3),
        2,
        ["01010", "01010", "01011"],
    ),
    "uni": ([0, 0, 0], [ALWAYS_VISIBLE, 0, 0, 0], range(3), 1, ["1100", "1110", "1111"]),
}


@pytest.mark.parametrize("name", MASKS)
def test_masks_written_out(name):
    row_order, key_order, row_position, num_memory, wanted = MASKS[name]
    rows = OrderedRows(*(tf.constant([list(x)]) for x in (row_order, row_order, row_position)))
    key_position = tf.range(-num_memory, len(key_order) - num_memory)
    keys = Keys(tf.constant([key_order]), tf.constant([key_order]), key_position)
    found = can_attend(rows, keys, name == "uni")[0].numpy().astype(int)
    assert ["".join(map(str, row)) for row in found] == wanted


def visible(mask, causal=False):
    """Masks of the content and query streams, int [B, Q, K]."""
    return [
        can_attend(rows, mask.keys, causal).numpy().astype(int)
        for rows in (mask.content, mask.query)
    ]


def test_layer_makes_both_masks():
    """One row with everything: memory of length 1 of 2, padding, an order and a target."""
    tokens = tf.zeros([1, 4], tf.int32)
    mask = TwoStreamAttentionMask()(
        tokens,
        order=tf.constant([[0, 2, 1, 0]]),
        is_padding=tf.constant([[True, False, False, False]]),
        segment_ids=tf.constant([[0, 1, 1, 2]]),
        memory=tf.ones([1, 2, 8]),
        memory_length=tf.constant([1]),
        target_positions=tf.constant([[1, 2]]),
    )
    content, query = visible(mask)
    assert content.tolist() == [
        [[0, 1, 0, 0, 0, 1], [0, 1, 0, 1, 1, 1], [0, 1, 0, 0, 1, 1], [0, 1, 0, 0, 0, 1]]
    ]
    assert query.tolist() == [[[0, 1, 0, 0, 1, 1], [0, 1, 0, 0, 0, 1]]]
    assert mask.keys.segment_ids.numpy().tolist() == [[0, 0, 0, 1, 1, 2]]
    assert mask.query.segment_ids.numpy().tolist() == [[1, 1]]
    assert mask.keys.positions.numpy().tolist() == [-2, -1, 0, 1, 2, 3]


def test_perm_mask_of_an_order_gives_the_masks_of_the_order():
    rng = np.random.default_rng(0)
    order = np.array([rng.permutation(7) for _ in range(3)])
    order[1] = [0, 0, 3, 0, 1, 2, 0]  # Context sees context.
    targets = np.array([[2, 5], [4, 5], [0, 6]])
    rest = {
        "is_padding": rng.random([3, 7]) < 0.3,
        "memory": rng.standard_normal([3, 5, 4]),
        "memory_length": np.array([0, 2, 5]),
        "target_positions": targets,
    }
    tokens = tf.zeros([3, 7], tf.int32)
    # True where i may not see j.
    perm_mask = order[:, None, :] > order[:, :, None]
    perm_mask |= (np.arange(7) == np.arange(7)[:, None]) & (rng.random([3, 7, 1]) < 0.5)
    by_order = TwoStreamAttentionMask()(tokens, order=order, **rest)
    # The diagonal does not matter: content sees itself, a target never does.
    by_mask = TwoStreamAttentionMask()(tokens, perm_mask=perm_mask, **rest)
    for causal in (False, True):
        assert_all_equal(visible(by_mask, causal), visible(by_order, causal))


def test_a_perm_mask_that_no_order_has():
    """Pairs that see each other, or neither the other."""
    perm_mask = np.array([[[0, 0, 1], [0, 0, 1], [1, 0, 0]]], bool)
    mask = TwoStreamAttentionMask()(
        tf.zeros([1, 3]), perm_mask=perm_mask, target_positions=[[0, 1, 2]]
    )
    content, query = visible(mask)
    assert content.tolist() == [[[1, 1, 0], [1, 1, 0], [0, 1, 1]]]
    assert query.tolist() == [[[0, 1, 0], [1, 0, 0], [0, 1, 0]]]
