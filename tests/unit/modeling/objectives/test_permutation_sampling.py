"""Targets and orders against a sequential oracle, and what a draw depends on."""

import dataclasses
import fractions
import math

import numpy as np
import pytest
import tensorflow as tf

from official.xlnet.configs.data import DataConfig
from official.xlnet.errors import ConfigError
from official.xlnet.modeling.kernels import stateless_random
from official.xlnet.modeling.objectives import permutation_sampling
from official.xlnet.tokenization.special_tokens import CLS_ID, EOD_ID, SEP_ID

WORDS = DataConfig(seq_len=61, reuse_len=23, num_predict=11, target_ratio=5.5, max_span=5)
SETTINGS = [
    WORDS,
    dataclasses.replace(WORDS, reuse_len=0, target_ratio=6.0, max_span=1),
    dataclasses.replace(WORDS, target_unit="token", target_ratio=1.0, num_predict=58),
    dataclasses.replace(WORDS, num_predict=1, max_span=3),
    dataclasses.replace(WORDS, max_span=0),
]


def make_rows(data, num_rows, seed=0):
    """Random windows: eod here and there, two SEP and CLS, every second row reversed."""
    rng = np.random.default_rng(seed)
    token_ids = rng.integers(9, 100, [num_rows, data.seq_len])
    token_ids[rng.random(token_ids.shape) < 0.02] = EOD_ID
    a_end = rng.integers(data.reuse_len + 1, data.seq_len - 3, num_rows)
    token_ids[np.arange(num_rows), a_end] = SEP_ID
    token_ids[:, -2:] = SEP_ID, CLS_ID
    return {
        "token_ids": tf.constant(token_ids, tf.int32),
        "is_word_start": tf.constant(rng.random(token_ids.shape) < 0.65),
        "can_be_target": tf.constant(token_ids >= 9),
        "is_reversed": tf.constant(np.arange(num_rows) % 2 == 1),
        "epoch": tf.constant(rng.integers(0, 5, num_rows), tf.int32),
        "window_id": tf.constant(rng.permutation(num_rows), tf.int64),
    }


def sample(rows, data, seed=3):
    sampled = permutation_sampling.sample_targets_and_order(**rows, data=data, seed=seed)
    return permutation_sampling.Targets(*(tensor.numpy() for tensor in sampled))


def word_of_each_token(is_word_start, is_special, is_reversed):
    """For every token of a row the number of its word, and whether its beginning is shown."""
    if is_reversed:
        words, _ = word_of_each_token(is_word_start[::-1], is_special[::-1], False)
        return max(words) - words[::-1], np.ones(len(words), bool)
    words, shown, word, is_shown = [], [], 0, False
    for i, starts in enumerate(is_word_start):
        after_special = i > 0 and (is_special[i] or is_special[i - 1])
        word += bool(starts or after_special)
        is_shown = is_shown or starts or after_special
        words.append(word)
        shown.append(is_shown)
    return np.array(words), np.array(shown)


def oracle(row, data, seed):
    """The definition for one row, in loops over Python numbers."""
    specials = ~row["can_be_target"]
    words, shown = word_of_each_token(row["is_word_start"], specials, row["is_reversed"])
    if data.target_unit == "token":
        words, shown = np.arange(data.seq_len), np.ones(data.seq_len, bool)
    first_budget = round(data.num_predict * data.reuse_len / data.seq_len)
    halves = [(0, data.reuse_len, first_budget)] if data.reuse_len else []
    halves.append((data.reuse_len, data.seq_len, data.num_predict - first_budget))
    num_contexts = [math.ceil((end - start) / data.target_ratio) + 1 for start, end, _ in halves]
    num_draws = [
        1 + 3 * s + 2 * (end - start)
        for s, (start, end, _) in zip(num_contexts, halves, strict=True)
    ]
    uniform = stateless_random.row_uniform(
        seed, 0, row["epoch"][None], row["window_id"][None], sum(num_draws)
    )
    draws = iter(uniform.numpy()[0].astype(np.float64))
    targets, order, lowest = set(), [], 0
    for s, (start, end, budget) in zip(num_contexts, halves, strict=True):
        phase = next(draws)
        lengths, places, ranks = ([next(draws) for _ in range(s)] for _ in range(3))
        unit_draws, order_draws = ([next(draws) for _ in range(end - start)] for _ in range(2))
        units = []
        for i in range(start, end):
            if i == start or words[i] != words[i - 1]:
                units.append([])
            units[-1].append(i)
        # Contexts, from left to right, in exact arithmetic.
        ratio, tick = fractions.Fraction(round(data.target_ratio * 4096), 4096), 4096
        harmonic = np.cumsum(1 / np.arange(1, data.max_span + 1))
        rank_of_unit = {u: 1 + unit_draws[u] for u in range(len(units))}
        begin = None
        for k in range(s if data.max_span else 0):
            if k == 0:
                n = 1 + int(lengths[0] * data.max_span)
                begin = -fractions.Fraction(int(phase * int(n * ratio * tick)), tick)
            else:
                n = 1 + sum(lengths[k] >= np.float32(h / harmonic[-1]) for h in harmonic[:-1])
            slack = int(n * (ratio - 1) * tick)
            span = begin + fractions.Fraction(int(places[k] * (slack + 1)), tick)
            for u in range(len(units)):
                if span <= u < span + n:
                    rank_of_unit[u] = ranks[k]
            begin += n * ratio
        chosen, left = set(), budget
        cut_words = {words[end - 1]} & {words[end]} if end < data.seq_len else set()
        cut_words |= {words[start]} & {words[start - 1]} if start else set()
        ranked = sorted(rank_of_unit, key=lambda u: (np.float32(rank_of_unit[u]), u))
        ranked = [
            units[u]
            for u in ranked
            if not specials[units[u][0]]
            and shown[units[u][0]]
            and words[units[u][0]] not in cut_words
        ]
        for _ in range(4):
            taken = 0
            fitting = [unit for unit in ranked if unit[0] not in chosen and len(unit) <= left]
            for unit in fitting:
                if taken + len(unit) > left:
                    break
                taken += len(unit)
                chosen.update(unit)
            left -= taken
        with_place = [
            i for i in range(start, end) if i in chosen or row["token_ids"][i] in (SEP_ID, CLS_ID)
        ]
        with_place.sort(key=lambda i: order_draws[i - start])
        order += [
            lowest + 1 + with_place.index(i) if i in with_place else lowest
            for i in range(start, end)
        ]
        targets |= chosen
        lowest = end + 1
    return targets, order


@pytest.mark.parametrize("max_span, expected", [(0, 1 - (38 / 47) * (37 / 46)), (1, 0.05)])
def test_targets_without_spans_are_independent(max_span, expected):
    """How many targets stand beside another one: 9 others of 47, or one in each context."""
    data = dataclasses.replace(WORDS, reuse_len=0, target_unit="token", num_predict=10)
    data = dataclasses.replace(data, seq_len=48, target_ratio=4.8, max_span=max_span)
    rows = {**make_rows(data, 4000), "can_be_target": tf.ones([4000, 48], tf.bool)}
    sampled = sample(rows, data)
    assert sampled.target_mask.all()
    is_target = np.zeros([4000, 48], bool)
    np.put_along_axis(is_target, sampled.target_positions, True, axis=1)
    inside = is_target[:, 1:-1]
    beside = (is_target[:, :-2] | is_target[:, 2:])[inside].mean()
    assert abs(beside - expected) < (0.01 if max_span == 0 else 0.05)
    counts = is_target.mean(0)
    assert np.ptp(counts) < 0.06 and abs(counts.mean() - 10 / 48) < 1e-9


@pytest.mark.parametrize("data", SETTINGS)
def test_equals_the_sequential_definition(data):
    rows = make_rows(data, num_rows=40)
    targets = sample(rows, data)
    for b in range(len(targets.order)):
        row = {name: tensor[b].numpy() for name, tensor in rows.items()}
        row["epoch"], row["window_id"] = rows["epoch"][b], rows["window_id"][b]
        expected_targets, expected_order = oracle(row, data, seed=3)
        assert targets.order[b].tolist() == expected_order
        # Slots: ascending targets first, then 0.
        unused = data.num_predict - len(expected_targets)
        slots = sorted(expected_targets) + [0] * unused
        assert targets.target_positions[b].tolist() == slots
        assert targets.target_mask[b].tolist() == [1] * len(expected_targets) + [0] * unused


@pytest.mark.parametrize(
    "data", [WORDS, *(pytest.param(data, marks=pytest.mark.slow) for data in SETTINGS[1:])]
)
def test_a_draw_is_the_same_with_xla(data):
    rows = make_rows(data, num_rows=40)
    compiled = tf.function(
        lambda: permutation_sampling.sample_targets_and_order(**rows, data=data, seed=3),
        jit_compile=True,
    )
    for found, wanted in zip(compiled(), sample(rows, data), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_a_draw_depends_on_seed_epoch_and_window_only():
    rows = make_rows(WORDS, num_rows=13)
    targets = sample(rows, WORDS)
    picked = [11, 2, 5]
    again = sample({name: tf.gather(tensor, picked) for name, tensor in rows.items()}, WORDS)
    for got, expected in zip(again, targets, strict=True):
        np.testing.assert_array_equal(got, expected[picked])
    for other in (
        sample({**rows, "epoch": rows["epoch"] + 1}, WORDS),
        sample({**rows, "window_id": rows["window_id"] + 100}, WORDS),
        sample(rows, WORDS, seed=4),
    ):
        assert (other.order != targets.order).any(axis=1).all()


def test_spans_too_long_for_32_bits():
    data = dataclasses.replace(WORDS, max_span=5000)
    with pytest.raises(ConfigError, match=r"max_span.*5000"):
        sample(make_rows(data, num_rows=2), data)


@pytest.mark.parametrize("data", SETTINGS[:2], ids=["halves", "whole window"])
def test_a_share_of_the_rows_is_predicted_from_left_to_right(data):
    """Their targets are those of random orders, and other rows do not change."""
    rows = make_rows(data, 400)
    mixed, plain = (
        permutation_sampling.Targets(
            *(
                tensor.numpy()
                for tensor in permutation_sampling.sample_targets_and_order(
                    **rows, data=data, seed=3, left_to_right_share=share
                )
            )
        )
        for share in (0.3, 0.0)
    )
    np.testing.assert_array_equal(plain.order, sample(rows, data).order)
    for name in ("target_positions", "target_mask"):
        np.testing.assert_array_equal(getattr(mixed, name), getattr(plain, name))
    is_forward = []
    for order, other in zip(mixed.order, plain.order, strict=True):
        ascends = True
        for start, end in ((0, data.reuse_len), (data.reuse_len, data.seq_len)):
            half = order[start:end]
            if len(half):
                placed = half[half > half.min()]
                ascends &= bool((np.diff(placed) == 1).all())
        is_forward.append(ascends)
        assert ascends or (order == other).all()
        # The same tokens are context, and have the same order.
        context = other == np.where(np.arange(len(other)) < data.reuse_len, 0, data.reuse_len + 1)
        if not data.reuse_len:
            context = other == 0
        np.testing.assert_array_equal(order[context], other[context])
    assert 0.3 - 0.08 < np.mean(is_forward) < 0.3 + 0.08
    every = permutation_sampling.sample_targets_and_order(
        **rows, data=data, seed=3, left_to_right_share=1.0
    )
    np.testing.assert_array_equal(every.order.numpy()[is_forward], mixed.order[is_forward])
