"""Relative shifts, those of the reference too, against loops over rows and keys."""

import itertools
import os
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from official.xlnet.modeling.kernels import relative_shift
from official.xlnet.modeling.kernels.device_forms import built_for, has_gpu
from official.xlnet.modeling.kernels.relative_shift import ConsecutiveRows, TargetRows
from official.xlnet.modeling.layers.attention import relative_shift as relative_shift_of_reference

BATCH, HEADS, WIDTH, MEMORY = 3, 2, 5, 7
SHAPES = [  # T, M, block size
    (13, MEMORY, 4),
    (13, MEMORY, 5),
    (12, 0, 4),
    (11, MEMORY, 2),
    (1, MEMORY, 4),
    (2, 0, 128),
    (131, 3, 128),
]


@pytest.fixture(params=SHAPES, ids=str)
def shape(request, monkeypatch, accelerator):
    num_tokens, num_memory, block_size = request.param
    monkeypatch.setattr(relative_shift, "BLOCK_SIZE", block_size)
    monkeypatch.setattr(relative_shift, "ACCELERATOR_BLOCK_SIZE", block_size)
    return num_tokens, num_memory


@pytest.fixture(params=["CPU", "GPU", "TPU"])
def accelerator(request):
    """Whether the forms are those of an accelerator."""
    with built_for(request.param):
        yield request.param != "CPU"


def random_rows(num_tokens, num_memory, consecutive, table_rows=BATCH):
    """Rows, a table of positions, the rows' positions, and their class."""
    rng = np.random.default_rng(num_tokens)
    num_keys, num_distances = num_memory + num_tokens, num_memory + 2 * num_tokens - 1
    if consecutive:
        position = np.broadcast_to(np.arange(num_tokens), [BATCH, num_tokens])
        rows = ConsecutiveRows(num_tokens, num_keys)
    else:
        position = rng.integers(0, num_tokens, [BATCH, 3])
        rows = TargetRows(num_tokens, num_keys)
    query = rng.standard_normal([BATCH, HEADS, position.shape[1], WIDTH]).astype(np.float32)
    table = rng.standard_normal([table_rows, HEADS, num_distances, WIDTH]).astype(np.float32)
    return query, table, position.astype(np.int32), rows


@pytest.mark.parametrize("table_rows", [1, BATCH])
@pytest.mark.parametrize("consecutive", [True, False])
def test_score_of_row_and_key_is_that_of_their_distance(shape, consecutive, table_rows):
    num_tokens, num_memory = shape
    query, table, position, rows = random_rows(*shape, consecutive, table_rows)
    wanted = np.zeros([BATCH, HEADS, position.shape[1], num_memory + num_tokens])
    for b, n, q, j in itertools.product(*map(range, wanted.shape)):
        distance = position[b, q] - (j - num_memory)
        row_of_distance = num_memory + num_tokens - 1 - distance  # The first row is the farthest.
        wanted[b, n, q, j] = query[b, n, q] @ table[b % table_rows, n, row_of_distance]
    scores = rows.scores(tf.constant(query), tf.constant(table))
    np.testing.assert_allclose(rows.to_keys(scores, position), wanted, atol=1e-5)
    table = np.broadcast_to(table, [BATCH, *table.shape[1:]])
    of_reference = tf.einsum("bnxh,bnrh->bxnr", query, table)
    shifted = relative_shift_of_reference(of_reference, position, num_tokens, wanted.shape[-1])
    np.testing.assert_allclose(shifted, wanted, atol=1e-5)


@pytest.mark.parametrize("consecutive", [True, False])
def test_from_keys_is_the_transpose_of_to_keys(shape, consecutive):
    """Every unit vector of keys goes to the one distance that it is read from."""
    query, table, position, rows = random_rows(*shape, consecutive)
    scores = rows.scores(tf.constant(query), tf.constant(table))
    rng = np.random.default_rng(1)
    x = rng.integers(-9, 10, scores.shape).astype(np.float32)
    by_key = rows.to_keys(tf.constant(x), position)
    y = rng.integers(-9, 10, by_key.shape).astype(np.float32)
    back = rows.from_keys(tf.constant(y), position)
    assert back.shape == scores.shape
    assert np.sum(by_key.numpy() * y) == np.sum(x * back.numpy())
    np.testing.assert_array_equal(rows.to_keys(back, position), y)
    with tf.GradientTape() as tape:
        tape.watch(scores)
        shifted = rows.to_keys(scores, position)
    np.testing.assert_array_equal(tape.gradient(shifted, scores, tf.constant(y)), back)


def test_blocks_cover_the_rows(shape):
    num_tokens, num_memory = shape
    rows = ConsecutiveRows(num_tokens, num_tokens + num_memory)
    assert rows.block <= relative_shift.block_size()
    assert 0 <= rows.padding < rows.block
    assert rows.num_blocks * rows.block == num_tokens + rows.padding


@pytest.mark.slow
@pytest.mark.parametrize("blocks", ["[[]]", "[[1], [2]]"], ids=["targets", "consecutive"])
def test_one_head_and_one_table_for_all_rows(blocks):
    """A broadcast that TensorFlow 2.20 with oneDNN gets wrong, most often in a new process."""
    script = """
import numpy as np
import tensorflow as tf
from official.xlnet.modeling.kernels.matrix_products import distance_scores
rng = np.random.default_rng(0)
for blocks in BLOCKS:
    query = rng.standard_normal([3, 1, *blocks, 21, 8]).astype(np.float32)
    table = rng.standard_normal([1, 1, *blocks, 52, 8]).astype(np.float32)
    found = distance_scores(tf.constant(query), tf.constant(table))
    wanted = np.einsum("...ph,...rh->...pr", query, np.broadcast_to(table, [3, *table.shape[1:]]))
    np.testing.assert_allclose(found, wanted, atol=1e-4)
"""
    environment = {**os.environ, "TF_ENABLE_ONEDNN_OPTS": "1"}
    command = [sys.executable, "-c", script.replace("BLOCKS", blocks)]
    subprocess.run(command, env=environment, check=True)


def test_accelerators_loop_over_no_rows(shape, accelerator):
    """A row at a time is fast on a CPU, and nowhere else; one gather of all is on a GPU."""
    query, table, position, rows = random_rows(*shape, consecutive=False)

    @tf.function
    def there_and_back(query, table):
        by_key = rows.to_keys(rows.scores(query, table), tf.constant(position))
        return rows.from_keys(by_key, tf.constant(position))

    graph = there_and_back.get_concrete_function(query, table).graph
    kinds = {operation.type for operation in graph.get_operations()}
    assert bool(kinds & {"While", "StatelessWhile"}) != accelerator
    assert not kinds & {"GatherNd", "MatrixDiagPartV3"} or not accelerator
    assert "GatherV2" not in kinds or has_gpu() or not accelerator
