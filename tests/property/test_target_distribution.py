"""Targets are where the module says they are: chi-square tests on fixed seeds.

Each draw equals a sequential definition: tests/unit/modeling/objectives.
"""

import dataclasses

import numpy as np
import pytest
import scipy.stats
import tensorflow as tf

from official.xlnet.configs.data import DataConfig
from official.xlnet.modeling.objectives import permutation_sampling

NUM_ROWS = 6000
DATA = DataConfig(seq_len=53, reuse_len=0, num_predict=9, target_ratio=5.75, max_span=4)


def text_rows(is_word_start, num_rows):
    """Rows of nothing but text, with equal word starts."""
    shape = [num_rows, len(is_word_start)]
    return {
        "token_ids": tf.fill(shape, 50),
        "is_word_start": tf.broadcast_to(tf.constant(is_word_start), shape),
        "can_be_target": tf.fill(shape, True),
        "is_reversed": tf.fill([num_rows], False),
        "epoch": tf.zeros([num_rows], tf.int32),
        "window_id": tf.range(num_rows, dtype=tf.int64),
    }


def is_target(data, rows):
    targets = permutation_sampling.sample_targets_and_order(**rows, data=data, seed=5)
    one_hot = tf.one_hot(targets.target_positions, data.seq_len)
    return tf.reduce_sum(one_hot * targets.target_mask[..., tf.newaxis], axis=1).numpy() > 0


@pytest.mark.parametrize("reuse_len", [0, 23])
def test_targets_are_everywhere_alike(reuse_len):
    data = dataclasses.replace(DATA, reuse_len=reuse_len, target_unit="token")
    chosen = is_target(data, text_rows([False] * data.seq_len, NUM_ROWS))
    assert (chosen.sum(axis=1) == data.num_predict).all()
    # One target of every row, so that the counts are of independent draws.
    pick = np.random.default_rng(0).integers(0, data.num_predict, NUM_ROWS)
    positions = np.nonzero(chosen)[1].reshape(NUM_ROWS, -1)[np.arange(NUM_ROWS), pick]
    counts = np.bincount(positions, minlength=data.seq_len)
    first = round(data.num_predict * reuse_len / data.seq_len)
    expected = np.full(data.seq_len, (data.num_predict - first) / (data.seq_len - reuse_len))
    if reuse_len:
        expected[:reuse_len] = first / reuse_len
    expected *= NUM_ROWS / data.num_predict
    assert scipy.stats.chisquare(counts, expected).pvalue > 1e-3


def test_long_words_are_targets_as_often_as_short_ones():
    rng = np.random.default_rng(0)
    is_word_start = rng.random(512) < 0.65
    is_word_start[[0, 256]] = True
    data = DataConfig(seq_len=512, reuse_len=256, num_predict=85, target_ratio=6.0)
    chosen = is_target(data, text_rows(is_word_start, 600))
    # The share of predicted tokens is 1/K within 2 per cent.
    assert abs(chosen.mean() * data.target_ratio - 1) < 0.02
    length = np.diff(np.append(np.flatnonzero(is_word_start), 512)).repeat(
        np.diff(np.append(np.flatnonzero(is_word_start), 512))
    )
    for n in (1, 2, 3):
        assert abs(chosen[:, length == n].mean() * data.target_ratio - 1) < 0.06


def test_places_in_the_order_are_equally_likely():
    data = dataclasses.replace(DATA, seq_len=17, num_predict=3, target_unit="token")
    targets = permutation_sampling.sample_targets_and_order(
        **text_rows([True] * 17, NUM_ROWS), data=data, seed=5
    )
    places = tf.gather(targets.order, targets.target_positions, batch_dims=1).numpy()
    _, counts = np.unique(places, axis=0, return_counts=True)
    assert counts.size == 6
    assert scipy.stats.chisquare(counts).pvalue > 1e-3
