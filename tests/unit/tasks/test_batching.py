"""Batches of units: padding, buckets, order, resume."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from official.xlnet.modeling.models.xlnet_task_model import bucket_lengths
from official.xlnet.tasks.batching import TrainingBatches, Unit, collate, epoch_batches


def unit(*lengths, label=0, subtask=None):
    labels = {"label": np.int32(label)}
    if subtask is not None:
        labels["subtask"] = np.int32(subtask)
    return Unit(
        [
            {
                "token_ids": np.arange(10, 10 + n, dtype=np.int32),
                "segment_ids": np.zeros(n, np.int32),
            }
            if n
            else {}
            for n in lengths
        ],
        labels,
    )


def test_collate_by_hand():
    batch = collate([unit(2, 0, label=5), unit(3, 1, label=6)], length=4, num_units=3)
    assert batch["token_ids"].tolist() == [
        [[5, 5, 10, 11], [5, 5, 5, 5]],
        [[5, 10, 11, 12], [5, 5, 5, 10]],
        [[5, 10, 11, 12], [5, 5, 5, 10]],
    ]
    assert batch["segment_ids"][0].tolist() == [[4, 4, 0, 0], [4, 4, 4, 4]]
    assert batch["is_padding"][1].tolist() == [[True, False, False, False], [True] * 3 + [False]]
    assert batch["label"].tolist() == [5, 6, 6]
    assert batch["weight"].tolist() == [1, 1, 0]


def test_every_unit_is_in_one_batch_of_its_bucket_and_group():
    rng = np.random.default_rng(0)
    lengths, groups = rng.integers(1, 100, 211), rng.integers(0, 3, 211)
    buckets = bucket_lengths(100, 3)
    assert buckets == [25, 50, 100]
    counts = set()
    for epoch in range(4):
        batches = epoch_batches(lengths, groups, buckets, 7, seed=3, epoch=epoch)
        assert sorted(itertools.chain(*batches)) == list(range(211))
        assert max(map(len, batches)) <= 7
        mixed = 0
        for batch in batches:
            assert len({groups[i] for i in batch}) == 1
            mixed += len({int(np.searchsorted(buckets, lengths[i])) for i in batch}) > 1
        assert mixed <= 3 * 3
        counts.add(len(batches))
    assert len(counts) == 1


def test_batches_are_a_function_of_the_step():
    units = [unit(1 + n % 11, label=n) for n in range(29)]
    batches = TrainingBatches(units, 12, bucket_lengths(12, 2), 5, seed=1)
    whole = [b["label"].tolist() for b in itertools.islice(batches(0), 20)]
    for start in (1, 7, 13):
        rest = [b["label"].tolist() for b in itertools.islice(batches(start), 20 - start)]
        assert rest == whole[start:]
    size = batches.steps_per_epoch
    assert whole[:size] != whole[size : 2 * size]
    from_dataset = [b["label"].numpy().tolist() for b in batches.dataset(3).take(4)]
    assert from_dataset == whole[3:7]


@pytest.mark.parametrize(("pipelines", "replicas"), [(1, 1), (1, 3), (3, 3), (2, 6)])
def test_replicas_share_every_batch(pipelines, replicas):
    """Joined in the order of replicas, their parts are the batch, its filling included."""
    units = [Unit([{"token_ids": np.arange(5 + n % 7)}], {"label": np.int32(n)}) for n in range(17)]
    batches = TrainingBatches(units, 12, bucket_lengths(12, 2), 6, seed=1)
    parts = []
    for number in range(pipelines):
        context = tf.distribute.InputContext(pipelines, number, replicas)
        dataset = batches.dataset(2, context)
        assert dataset.cardinality() == tf.data.INFINITE_CARDINALITY
        parts.append(iter(dataset))
    for expected, _ in zip(batches(2), range(batches.steps_per_epoch), strict=False):
        local = [next(each) for each in parts for _ in range(replicas // pipelines)]
        for name, values in expected.items():
            assert local[0][name].shape == (6 // replicas, *values.shape[1:])
            np.testing.assert_array_equal(np.concatenate([x[name] for x in local]), values)
