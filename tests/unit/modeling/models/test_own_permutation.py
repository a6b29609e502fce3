"""A batch with its own `perm_mask` and targets trains as the order that these were made from."""

import numpy as np
import pytest
import tensorflow as tf

from official.xlnet.errors import DataError
from tests.helpers.compiled import make_model, state
from tests.helpers.tiny import MEMORY, TARGETS, TOKENS, VOCAB, random_windows

SETTINGS = {"num_layers": 1, "adam_epsilon": 1e-3, "dropout": 0.2, "dropatt": 0.3}


def own_batch(task, windows):
    """The windows with the mask and targets that were drawn for them."""
    order_BT = task.inputs["order"].numpy()
    return {
        "token_ids": windows["token_ids"],
        "segment_ids": windows["segment_ids"],
        "is_reversed": windows["is_reversed"],
        "context_length": windows["context_length"],
        "perm_mask": tf.constant(order_BT[:, :, None] < order_BT[:, None, :]),
        "target_positions": task.inputs["target_positions"],
        "target_mask": task.mask_BP,
    }


def test_a_mask_made_from_the_order_trains_as_the_order():
    """Two steps with dropout and memory: the same losses, gradient norms, weights and memory."""
    drawn, own = make_model(**SETTINGS), make_model(**SETTINGS)
    for seed, context_length in ((0, 0), (1, MEMORY)):
        windows = random_windows(seed, context_length=context_length)
        batch = own_batch(drawn.make_permutation(windows), windows)
        wanted, got = drawn.train_step(windows), own.train_step(batch)
        for name, value in wanted.items():
            np.testing.assert_allclose(got[name], value, rtol=1e-5, err_msg=name)
    for ours, theirs in zip(state(own), state(drawn), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


@pytest.mark.slow
def test_fit_with_masks_of_ones_own():
    """A data set of what is needed alone, with a last batch of fewer rows, compiled."""
    rng = np.random.default_rng(0)
    rows = 10
    # Left to right: i sees what stands before it and itself.
    future = np.triu(np.ones([TOKENS, TOKENS], bool), 1)
    batch = {
        "token_ids": rng.integers(9, VOCAB, [rows, TOKENS]).astype(np.int32),
        "perm_mask": np.broadcast_to(future, [rows, TOKENS, TOKENS]),
        "target_positions": np.tile(np.arange(3, 3 + TARGETS, dtype=np.int32), [rows, 1]),
    }
    model = make_model(num_layers=1, mem_len=0, bidirectional=False)
    data = tf.data.Dataset.from_tensor_slices(batch).batch(4)
    history = model.fit(data, epochs=3, verbose=0).history["loss"]
    assert history[2] < history[0]
    assert model.evaluate(data, verbose=0) < history[2]
    predicted = model.predict(data, verbose=0)
    assert predicted["logits"].shape == (rows, TARGETS, VOCAB)


def test_memory_needs_a_known_number_of_rows():
    model = make_model(num_layers=1)
    data = tf.data.Dataset.from_tensor_slices(random_windows(0, context_length=0)).batch(4)
    with pytest.raises(DataError, match=r"known number of rows.*drop_remainder=True"):
        model.fit(data, verbose=0)
