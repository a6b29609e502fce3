"""Batches of units: padding, buckets, order, resume."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from official.xlnet.modeling.models.xlnet_task_model import bucket_lengths
from official.xlnet.tasks.batching import (
    TrainingBatches,
    Unit,
    collate,
    epoch_batches,
    fitted_lengths,
)


def unit(*lengths, label=0):
    sequences = [
        {"token_ids": np.arange(10, 10 + n), "segment_ids": np.zeros(n, np.int32)} if n else {}
        for n in lengths
    ]
    return Unit(sequences, {"label": np.int32(label)})


def test_collate_by_hand():
    batch = collate([unit(2, 0, label=5), unit(3, 1, label=6)], length=4, num_units=3)
    expected = {
        "token_ids": [
            [[5, 5, 10, 11], [5, 5, 5, 5]],
            [[5, 10, 11, 12], [5, 5, 5, 10]],
            [[5, 10, 11, 12], [5, 5, 5, 10]],
        ],
        "segment_ids": [
            [[4, 4, 0, 0], [4, 4, 4, 4]],
            [[4, 0, 0, 0], [4, 4, 4, 0]],
            [[4, 0, 0, 0], [4, 4, 4, 0]],
        ],
        "is_padding": [
            [[True, True, False, False], [True] * 4],
            [[True, False, False, False], [True] * 3 + [False]],
            [[True, False, False, False], [True] * 3 + [False]],
        ],
        "label": [5, 6, 6],
        "weight": [1, 1, 0],
    }
    assert {name: batch[name].tolist() for name in expected} == expected


def test_every_unit_is_in_one_batch_of_its_bucket_and_group():
    rng = np.random.default_rng(0)
    lengths, groups = rng.integers(1, 100, 211), rng.integers(0, 3, 211)
    buckets = bucket_lengths(100, 3)
    assert buckets == [25, 50, 100]
    counts = set()
    for epoch in range(4):
        batches = epoch_batches(lengths, groups, buckets, 7, seed=3, epoch=epoch)
        counts.add(len(batches))
        assert sorted(itertools.chain(*batches)) == list(range(211))
        assert max(map(len, batches)) <= 7
        assert all(len({groups[i] for i in batch}) == 1 for batch in batches)
        mixed = [len(set(np.searchsorted(buckets, lengths[batch]))) > 1 for batch in batches]
        assert sum(mixed) <= 3 * 3
    assert len(counts) == 1


def test_batches_are_a_function_of_the_step():
    batches = TrainingBatches(
        [unit(1 + n % 11, label=n) for n in range(29)], 12, bucket_lengths(12, 2), 5, seed=1
    )
    whole = [b["label"].tolist() for b in itertools.islice(batches(0), 20)]
    for start in (1, 7, 13):
        rest = [b["label"].tolist() for b in itertools.islice(batches(start), 20 - start)]
        assert rest == whole[start:]
    size = batches.steps_per_epoch
    assert whole[:size] != whole[size : 2 * size]


def padded_tokens(unit_lengths, lengths):
    """Tokens of units with their padding; longer ones are cut."""
    return sum(
        next((length for length in lengths if n <= length), lengths[-1]) for n in unit_lengths
    )


@pytest.mark.parametrize("seed", range(8))
def test_fitted_lengths_pad_the_least(seed):
    """Of all choices of so many multiples of 8; each length saves 3%, and a further one would not.

    So far as the last length, which holds the longest unit, does not decide.
    """
    rng = np.random.default_rng(seed)
    longest, shortest = int(rng.integers(41, 97)), 8 * int(rng.integers(0, 3))
    unit_lengths = [int(n) for n in rng.lognormal(3, 0.7, 37) + 1]
    found = fitted_lengths(unit_lengths, longest, 4, shortest)
    rounded = {-(-n // 8) * 8 for n in unit_lengths}
    last = max(shortest, min(longest, max(rounded)))
    smaller = {max(shortest, n) for n in rounded if n < last}
    fewest = [
        min(
            padded_tokens(unit_lengths, sorted({*chosen, last}))
            for chosen in itertools.combinations(smaller, num_lengths)
        )
        for num_lengths in range(5)
    ]
    assert found == sorted(found) and found[-1] == last and found[0] >= shortest
    assert padded_tokens(unit_lengths, found) == fewest[len(found) - 1]
    for number, (more, less) in enumerate(itertools.pairwise(fewest), 1):
        if number < len(found):
            assert less <= 0.97 * more
        elif number < 4:
            assert number > len(found) or less > 0.97 * more


def test_few_texts_of_one_length_need_one_graph():
    assert fitted_lengths([12, 9, 16], 512, 3) == [16]
    assert fitted_lengths([700, 512, 511], 512, 3) == [512]
    assert fitted_lengths([700, 509], 509, 3) == [509]
    assert fitted_lengths([], 100, 3) == [100]
    assert fitted_lengths([3, 4], 100, 3, shortest=9) == [9]


@pytest.mark.parametrize("are_drawn", [False, True], ids=["the same", "drawn anew"])
def test_batches_of_a_run_have_lengths_that_fit_the_units(are_drawn):
    """Not the longest length there may be, unless later epochs may need it."""
    units = [unit(3 + n % 5 * 10, label=n) for n in range(60)]  # 3, 13, … 43 tokens.
    of_epoch = (lambda epoch: units) if are_drawn else units
    batches = TrainingBatches(of_epoch, 100, bucket_lengths(100, 3), 6, seed=1, shortest=0)
    last = 100 if are_drawn else 48
    assert batches.lengths == fitted_lengths([u.length for u in units] + [last], 100, 3)
    assert len(batches.lengths) == 3 and batches.lengths[-1] == last
    seen = []
    for batch in itertools.islice(batches(0), batches.steps_per_epoch):
        assert batch["token_ids"].shape == (6, 1, last)
        seen += batch["label"][batch["weight"] > 0].tolist()
    assert sorted(seen) == list(range(60))


@pytest.mark.parametrize(("pipelines", "replicas"), [(1, 1), (1, 3), (3, 3), (2, 6)])
def test_replicas_share_every_batch(pipelines, replicas):
    """Joined in the order of replicas, their parts are the batch, its filling included."""
    units = [unit(5 + n % 7, label=n) for n in range(17)]
    batches = TrainingBatches(units, 12, bucket_lengths(12, 2), 6, seed=1)
    parts = [
        iter(batches.dataset(2, tf.distribute.InputContext(pipelines, number, replicas)))
        for number in range(pipelines)
    ]
    for expected in itertools.islice(batches(2), batches.steps_per_epoch):
        local = [next(each) for each in parts for _ in range(replicas // pipelines)]
        for name, values in expected.items():
            assert local[0][name].shape == (6 // replicas, *values.shape[1:])
            np.testing.assert_array_equal(np.concatenate([x[name] for x in local]), values)
