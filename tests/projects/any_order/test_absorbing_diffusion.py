"""Rates, masks and weights against their distributions, the loss against the mean over orders."""

import itertools

import numpy as np
import pytest
import tensorflow as tf
from scipy import stats
from scipy.special import log_softmax

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.sections import ObjectiveSections
from official.xlnet.inference.scoring import Scorer
from official.xlnet.modeling.objectives import create_objective
from official.xlnet.tokenization.special_tokens import MASK_ID, SEP_ID
from tests.helpers.small_language_model import NumberTokenizer, random_model

SEQ_LEN, NUM_TOKENS = 13, 11


def drawn(num_windows, epoch=0, mem_len=0):
    data = {"seq_len": SEQ_LEN, "reuse_len": 5, "num_predict": 3, "bidirectional": False}
    sections = {"objective": {"kind": "absorbing_diffusion"}, "data": data}
    config = XLNetConfig.from_dict(sections | {"model": {"vocab_size": 31, "mem_len": mem_len}})
    ids = np.random.default_rng(5).integers(9, 31, [num_windows, SEQ_LEN])
    ids[:, [4, 12]] = SEP_ID
    batch = {
        "token_ids": tf.constant(ids, tf.int32),
        "segment_ids": tf.zeros_like(ids, tf.int32),
        "can_be_target": tf.constant(ids > 8),
        "window_id": tf.range(num_windows, dtype=tf.int64) + (1 << 40),
        "epoch": tf.fill([num_windows], epoch),
    }
    return batch, create_objective(ObjectiveSections.of(config))(batch)


def test_all_rates_are_equally_frequent_and_masks_are_uniform():
    batch, task = drawn(2200)
    is_masked = task.inputs["token_ids"].numpy() == MASK_ID
    assert not is_masked[:, [4, 12]].any()
    np.testing.assert_array_equal(task.mask_BP.numpy() > 0, is_masked)
    kept = np.where(is_masked, batch["token_ids"], task.inputs["token_ids"])
    np.testing.assert_array_equal(kept, batch["token_ids"])
    count = is_masked.sum(axis=1)
    # Evenly spread: of each number in 1..N a share of 1 / N, also among few windows.
    for part in (count, count[700:766]):
        frequency = np.bincount(part, minlength=NUM_TOKENS + 1)
        assert frequency[0] == 0
        assert np.abs(frequency[1:] - len(part) / NUM_TOKENS).max() <= 3
    # Half of the tokens: each token and each pair is as likely as any other.
    rows = np.delete(is_masked, [4, 12], axis=1)[count == 5]
    assert stats.chisquare(rows.sum(axis=0)).pvalue > 1e-3
    pairs = [(rows[:, i] & rows[:, j]).sum() for i, j in itertools.combinations(range(11), 2)]
    assert np.std(pairs) < 2 * np.sqrt(np.mean(pairs))
    weights = task.mask_BP.numpy()
    np.testing.assert_allclose(weights.sum(axis=1), NUM_TOKENS, rtol=1e-6)
    np.testing.assert_allclose(weights.max(axis=1), NUM_TOKENS / count, rtol=1e-6)


def test_each_epoch_draws_anew_and_memory_never_sees_the_next_window():
    (_, first), (_, again), (_, other) = drawn(7), drawn(7), drawn(7, epoch=1, mem_len=3)
    np.testing.assert_array_equal(first.mask_BP, again.mask_BP)
    counts = [(task.mask_BP.numpy() > 0).sum(axis=1) for task in (first, other)]
    assert (counts[0] != counts[1]).any()
    assert "order" not in first.inputs
    np.testing.assert_array_equal(other.inputs["order"][0], [0] * 5 + [1] * 8)


@pytest.mark.parametrize("length", [3, 4])
def test_the_bound_is_the_mean_over_all_orders(length):
    """Hoogeboom et al. (2022): all subsets, weighted by N / n, against all orders of `Scorer`."""
    model = random_model(kind="absorbing_diffusion", mem_len=0)
    ids = [11, 30, 17, 25][:length]
    bound = 0.0
    for count in range(1, length + 1):
        for masked in itertools.combinations(range(length), count):
            row = [MASK_ID if n in masked else i for n, i in enumerate(ids)]
            inputs = {"token_ids": [row], "content_positions": [list(range(length))]}
            inputs = {name: tf.constant(x, tf.int32) for name, x in inputs.items()}
            log_p = log_softmax(model(inputs)["logits"].numpy()[0].astype(float), axis=1)
            probability = 1 / length / len(list(itertools.combinations(range(length), count)))
            loss = -sum(log_p[n, ids[n]] for n in masked)
            bound += probability * length / count * loss
    scorer, text = Scorer(model, NumberTokenizer(31)), " ".join(map(str, ids))
    orders = [list(order) for order in itertools.permutations(range(length))]
    totals = [score.total for score in scorer([text] * len(orders), orders)]
    assert bound == pytest.approx(-np.mean(totals), abs=1e-5)
    assert np.std(totals) > 0.05
