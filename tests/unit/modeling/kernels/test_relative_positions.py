"""Sinusoids against their formula, their factors, and shifts from distances to keys."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from official.xlnet.modeling.kernels import relative_shift
from official.xlnet.modeling.kernels.device_forms import DEVICES, built_for
from official.xlnet.modeling.kernels.factored_position import FactoredSinusoids
from official.xlnet.modeling.kernels.relative_shift import ConsecutiveRows, TargetRows
from official.xlnet.modeling.layers.attention import relative_shift as shift_of_reference
from official.xlnet.modeling.layers.relative_position import (
    RelativePositionEncoding,
    Sinusoids,
    sinusoids,
)

BATCH, TOKENS, MEMORY, HEADS, WIDTH = 3, 11, 5, 2, 14
KEYS = MEMORY + TOKENS
HIDDEN, REMEMBERED = np.zeros([BATCH, TOKENS, WIDTH]), np.zeros([BATCH, MEMORY, WIDTH])


@pytest.mark.parametrize("clamp_len", [0, 4])
def test_sinusoids(clamp_len):
    """By their formula, and from sizes that are unknown until the graph runs."""
    sine, cosine = sinusoids(5, 7, 6, clamp_len)
    distances = np.arange(11, -5, -1)
    clamped = np.clip(distances, -clamp_len, clamp_len) if clamp_len else distances
    angles = clamped[:, None] / 10000 ** (np.arange(0, 6, 2) / 6)
    np.testing.assert_allclose(sine, np.sin(angles), atol=1e-7)
    np.testing.assert_allclose(cosine, np.cos(angles), atol=1e-7)
    assert sine.dtype == cosine.dtype == np.float32
    layer = RelativePositionEncoding(clamp_len)

    @tf.function(input_signature=[tf.TensorSpec([None, None, 6])] * 2)
    def dynamic(hidden_states, memory):
        return layer(hidden_states, memory=memory)

    hidden, memory = np.zeros([3, 1999, 6]), np.zeros([3, 7, 6])
    wanted = sinusoids(1999, 7, 6, clamp_len)
    for table in (layer(hidden, memory=memory), dynamic(hidden, memory)):
        np.testing.assert_allclose(table, wanted, atol=1e-6)
    np.testing.assert_allclose(layer(hidden), sinusoids(1999, 0, 6, clamp_len), atol=1e-6)


def encoding(kind="TPU", clamp_len=0):
    with built_for(kind):
        return RelativePositionEncoding(clamp_len)(HIDDEN, memory=REMEMBERED)


def by_distance():
    """Sine and cosine of the distance of every row and key, [T, K, D / 2]."""
    table = sinusoids(TOKENS, MEMORY, WIDTH)
    number_TK = TOKENS - 1 - np.arange(TOKENS)[:, None] + np.arange(KEYS)
    return table.sine[number_TK], table.cosine[number_TK]


def products(factors):
    """Σ_f factor[i, f, c] · keys[j, f, c] of both halves."""
    return [np.einsum("ifc,jfc->ijc", half, factors.keys) for half in factors.rows]


def test_dropout_of_factors_is_drawn_for_each_row_and_half():
    """Only a TPU has factors, and only of distances that are not clamped."""
    kinds = [type(encoding(*arguments)) for arguments in (("CPU",), ("GPU",), ("TPU",), ("TPU", 4))]
    assert kinds == [Sinusoids, Sinusoids, FactoredSinusoids, Sinusoids]
    rate, masks = 0.4, []
    dropped = encoding().with_dropout(rate, tf.constant([3, 5]), tf.constant([7, 11]))
    for got, wanted in zip(products(dropped), by_distance(), strict=True):
        # One mask for all keys: an element of a row is 0, or divided by the probability to stay.
        is_kept = np.abs(got).max(axis=1, keepdims=True) > 1e-6
        np.testing.assert_allclose(got, np.where(is_kept, wanted / (1 - rate), 0), atol=1e-5)
        assert 0.4 < is_kept.mean() < 0.8
        masks.append(is_kept)
    assert (masks[0] != masks[1]).any()
    assert (masks[0] != masks[0][:1]).any()


@pytest.fixture(params=DEVICES)
def kind(request):
    with built_for(request.param):
        yield request.param


@pytest.mark.parametrize("consecutive", [True, False])
@pytest.mark.parametrize(
    ("num_tokens", "num_memory", "block_size", "table_rows"),
    [(13, 7, 4, 1), (12, 0, 4, 3), (11, 7, 2, 3), (1, 7, 4, 1), (2, 0, 128, 3), (131, 3, 128, 1)],
)
def test_scores_by_distance_become_scores_by_key_and_back(
    num_tokens, num_memory, block_size, table_rows, consecutive, kind, monkeypatch
):
    """Against loops over rows and keys; the way back is the transpose, and the gradient."""
    monkeypatch.setattr(relative_shift, "BLOCK_SIZE", block_size)
    monkeypatch.setattr(relative_shift, "ACCELERATOR_BLOCK_SIZE", block_size)
    rng = np.random.default_rng(num_tokens)
    num_keys = num_memory + num_tokens
    # One head and one table: a broadcast that TensorFlow 2.20 with oneDNN gets wrong.
    heads = 1 if table_rows == 1 else HEADS
    position = np.broadcast_to(np.arange(num_tokens), [BATCH, num_tokens]).astype(np.int32)
    rows = (ConsecutiveRows if consecutive else TargetRows)(num_tokens, num_keys)
    if not consecutive:
        position = rng.integers(0, num_tokens, [BATCH, 3]).astype(np.int32)
    query = rng.standard_normal([BATCH, heads, position.shape[1], 5]).astype(np.float32)
    shape = [table_rows, heads, num_keys + num_tokens - 1, 5]
    table = rng.standard_normal(shape).astype(np.float32)
    wanted = np.zeros([BATCH, heads, position.shape[1], num_keys])
    for b, n, q, j in itertools.product(*map(range, wanted.shape)):
        # The first row of the table is the farthest distance.
        row = num_keys - 1 - (position[b, q] - (j - num_memory))
        wanted[b, n, q, j] = query[b, n, q] @ table[b % table_rows, n, row]
    scores = rows.scores(tf.constant(query), tf.constant(table))
    by_all = np.einsum("bnxh,bnrh->bxnr", query, np.broadcast_to(table, [BATCH, *shape[1:]]))
    shifted = shift_of_reference(tf.constant(by_all), position, num_tokens, num_keys)
    np.testing.assert_allclose(shifted, wanted, atol=1e-5)

    with tf.GradientTape() as tape:
        tape.watch(scores)
        by_key = rows.to_keys(scores, position)
    np.testing.assert_allclose(by_key, wanted, atol=1e-5)
    y = rng.integers(-9, 10, by_key.shape).astype(np.float32)
    back = rows.from_keys(tf.constant(y), position)
    np.testing.assert_array_equal(rows.to_keys(back, position), y)
    np.testing.assert_allclose(np.sum(scores * back), np.sum(wanted * y), rtol=1e-3)
    np.testing.assert_array_equal(tape.gradient(by_key, scores, tf.constant(y)), back)

    @tf.function
    def there_and_back(scores):
        return rows.from_keys(rows.to_keys(scores, position), tf.constant(position))

    # A row at a time is fast on a CPU, and nowhere else; one gather of all is on a GPU.
    graph = there_and_back.get_concrete_function(scores).graph
    kinds = {operation.type for operation in graph.get_operations()}
    if not consecutive:
        assert bool(kinds & {"While", "StatelessWhile"}) == (kind == "CPU")
    if kind != "CPU":
        assert not kinds & {"GatherNd", "MatrixDiagPartV3"}
    if kind == "TPU":
        assert "GatherV2" not in kinds
