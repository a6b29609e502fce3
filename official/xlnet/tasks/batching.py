"""Padding, bucketing by length and batching of task inputs.

A unit is the input of one prediction: one sequence, the options of a question, or the windows of
a long text. Sequences are padded on the left.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from official.xlnet.tokenization.graph.packing import PADDING

Arrays = dict[str, np.ndarray]
_LENGTH_STEP = 8  # Fitted lengths are multiples of it.
_LEAST_SAVED = 0.03  # Share of the tokens that a further length has to save, for its graph.


@dataclasses.dataclass(slots=True)
class Unit:
    """The input of one prediction.

    Attributes:
      sequences: S dictionaries of per-token arrays [T, …]: `token_ids`, `segment_ids` and any
        others; {} or empty arrays for a sequence that is all padding.
      labels: arrays without a token axis.
      weight: weight of the unit in the loss.
      places: positions of its tokens in the text, as arrays that `Task.predict` needs.
    """

    sequences: list[Arrays]
    labels: Arrays
    weight: float = 1.0
    places: Arrays = dataclasses.field(default_factory=dict)

    @property
    def length(self) -> int:
        """Number of tokens of the longest sequence."""
        lengths = [len(sequence["token_ids"]) for sequence in self.sequences if sequence]
        return max(lengths, default=0)

    @property
    def head_index(self) -> int:
        """Index of the head that computes its loss, where each data set of a task has one."""
        return int(self.labels.get("subtask", 0))


def collate(units: Sequence[Unit], length: int, num_units: int) -> Arrays:
    """Pads units and stacks them into a batch.

    Args:
      units: 1 to `num_units` units with the same arrays.
      length: sequence length of the batch, T.
      num_units: number of units of the batch, U. A smaller batch is filled up with copies of the
        last unit with weight 0.

    Returns:
      Per-token arrays [U, S, T, …], among them `is_padding` bool; labels [U, …]; and `weight`
      float32 [U].

    Example:
      >>> unit = Unit([{"token_ids": np.array([21, 22])}], {"label": np.int32(1)})
      >>> collate([unit], length=3, num_units=2)["token_ids"].tolist()
      [[[5, 21, 22]], [[5, 21, 22]]]
    """
    num_copies = num_units - len(units)
    weights = [unit.weight for unit in units] + [0.0] * num_copies
    units = [*units, *[units[-1]] * num_copies]
    shape = num_units, len(units[0].sequences), length
    first_sequence = next(sequence for sequence in units[0].sequences if sequence)
    batch = {}
    for name, values in first_sequence.items():
        shape_of_array = (*shape, *values.shape[1:])
        batch[name] = np.full(shape_of_array, PADDING.get(name, 0), values.dtype)
    batch["is_padding"] = np.ones(shape, bool)
    for u, unit in enumerate(units):
        for s, sequence in enumerate(unit.sequences):
            for name, values in sequence.items():
                batch[name][u, s, length - len(values) :] = values
            if sequence:
                batch["is_padding"][u, s, length - len(sequence["token_ids"]) :] = False
    for name in units[0].labels:
        batch[name] = np.stack([np.asarray(unit.labels[name]) for unit in units])
    batch["weight"] = np.array(weights, np.float32)
    return batch


def bucket(length: int, lengths: Sequence[int]) -> int:
    """Returns the index of the smallest bucket that fits a length.

    Args:
      length: number of tokens.
      lengths: bucket lengths, ascending.

    Returns:
      The index; for a longer input, the last one.

    Example:
      >>> bucket(20, (16, 32, 64))
      1
    """
    return min(int(np.searchsorted(lengths, length)), len(lengths) - 1)


def fitted_lengths(
    unit_lengths: Sequence[int], longest: int, num_lengths: int, shortest: int = 0
) -> list[int]:
    """Returns the few bucket lengths with which units are padded to the fewest tokens.

    Each length is a graph of its own, so that a further one is only taken if it saves 3% of the
    tokens. Batches that mix buckets are not considered.

    Args:
      unit_lengths: number of tokens of each unit.
      longest: largest length; longer units count as cut to it.
      num_lengths: largest number of lengths.
      shortest: smallest length.

    Returns:
      Lengths, ascending, multiples of 8 except for `longest`. The last one holds the longest unit.

    Example:
      >>> fitted_lengths([12, 40, 38, 45, 510], longest=512, num_lengths=3)
      [16, 48, 512]
    """
    if not unit_lengths:
        return [longest]
    rounded = -(-np.asarray(unit_lengths, np.int64) // _LENGTH_STEP) * _LENGTH_STEP
    candidates, counts = np.unique(np.clip(rounded, shortest, longest), return_counts=True)
    num_units = np.cumsum(counts)  # That fit a candidate.
    # Of each candidate as the last length: the fewest tokens of the units that fit it, and the
    # lengths that need them.
    tokens, lengths = candidates * num_units, [[int(length)] for length in candidates]
    for _ in range(1, num_lengths):
        between = num_units - num_units[:, None]
        with_one_more = np.where(between > 0, tokens[:, None] + candidates * between, np.inf)
        before = np.argmin(with_one_more, axis=0)
        fewer = np.min(with_one_more, axis=0)
        if fewer[-1] > (1 - _LEAST_SAVED) * tokens[-1]:
            break
        lengths = [[*lengths[i], int(length)] for i, length in zip(before, candidates, strict=True)]
        tokens = fewer
    return lengths[-1]


def batches_of_equal(keys: Sequence[Any], batch_size: int) -> Iterator[list[int]]:
    """Yields indices of items in batches of equal keys, ascending.

    Args:
      keys: the key of each item, e.g. the length that it is padded to.
      batch_size: largest number of items of a batch.

    Example:
      >>> list(batches_of_equal([32, 16, 32, 32], batch_size=2))
      [[1], [0, 2], [3]]
    """
    ascending = sorted(range(len(keys)), key=keys.__getitem__)
    for _, group in itertools.groupby(ascending, key=keys.__getitem__):
        rows = list(group)
        yield from (rows[i : i + batch_size] for i in range(0, len(rows), batch_size))


def epoch_batches(
    unit_lengths: Sequence[int],
    groups: Sequence[int],
    lengths: Sequence[int],
    batch_size: int,
    seed: int,
    epoch: int,
) -> list[np.ndarray]:
    """Shuffles the units of an epoch and batches them by length bucket and group.

    Every unit is in exactly one batch. All units of a batch belong to one group and one bucket,
    except in batches of leftovers, which mix buckets. The number of batches is the same in every
    epoch.

    Args:
      unit_lengths: number of tokens of each unit.
      groups: group of each unit; batches never mix groups.
      lengths: bucket lengths, ascending.
      batch_size: number of units of a batch; the last batch of a group may have fewer.
      seed: shuffling seed.
      epoch: epoch number, counted from 0.

    Returns:
      Indices of the units of each batch.
    """
    rng = np.random.default_rng([seed, epoch])
    order = rng.permutation(len(unit_lengths))
    bucket_of_unit = np.array([bucket(length, lengths) for length in unit_lengths], np.int64)
    group_of_unit = np.asarray(groups)
    batches = []
    for group in np.unique(group_of_unit):
        leftovers = []
        for bucket_index in range(len(lengths)):
            is_member = (bucket_of_unit == bucket_index) & (group_of_unit == group)
            members = order[is_member[order]]
            num_in_full_batches = len(members) // batch_size * batch_size
            batches += list(members[:num_in_full_batches].reshape(-1, batch_size))
            leftovers += list(members[num_in_full_batches:])
        for start in range(0, len(leftovers), batch_size):
            batches.append(np.array(leftovers[start : start + batch_size]))
    return [batches[i] for i in rng.permutation(len(batches))]


class TrainingBatches:
    """Infinite, resumable stream of training batches; each batch is a function of the step.

    Args:
      units: list of units, or a function from the epoch number to one.
      length: sequence length of every batch, T.
      lengths: bucket lengths, ascending; the last one is T.
      batch_size: number of units of a batch, U.
      seed: shuffling seed.
      shortest: with this number, at most as many other lengths, from it on, take the place of
        `lengths`: those that fit the units of the first epoch; see `fitted_lengths`.

    Attributes:
      lengths: the lengths in use.
      steps_per_epoch: number of batches of an epoch.
      unit_lengths: numbers of tokens of the units of the first epoch.
    """

    def __init__(
        self,
        units,
        length: int,
        lengths: Sequence[int],
        batch_size: int,
        seed: int,
        shortest: int | None = None,
    ):
        self._units_of = units if callable(units) else lambda epoch: units
        self._batch_size, self._seed = batch_size, seed
        first = self._units_of(0)
        self.unit_lengths = [unit.length for unit in first]
        self.lengths = list(lengths)
        if shortest is not None and len(lengths) > 1:
            # Units of later epochs may be longer, where they are drawn anew.
            known_lengths = [*self.unit_lengths, length] if callable(units) else self.unit_lengths
            self.lengths = fitted_lengths(known_lengths, length, len(lengths), shortest)
        self._length = self.lengths[-1]
        self.steps_per_epoch = len(self._plan(first, 0))

    def _plan(self, units: Sequence[Unit], epoch: int) -> list[np.ndarray]:
        return epoch_batches(
            [unit.length for unit in units],
            [unit.head_index for unit in units],
            self.lengths,
            self._batch_size,
            self._seed,
            epoch,
        )

    def __call__(self, start_step: int) -> Iterator[Arrays]:
        """Yields the batches from `start_step` on."""
        epoch, skipped = divmod(start_step, self.steps_per_epoch)
        while True:
            units = self._units_of(epoch)
            for indices in self._plan(units, epoch)[skipped:]:
                yield collate([units[i] for i in indices], self._length, self._batch_size)
            epoch, skipped = epoch + 1, 0

    def dataset(
        self, start_step: int, input_context: tf.distribute.InputContext | None = None
    ) -> tf.data.Dataset:
        """Returns a prefetched data set of the batches from `start_step` on.

        Args:
          start_step: step of the first batch.
          input_context: the argument of `strategy.distribute_datasets_from_function`. Each input
            pipeline yields its own units of a batch, in batches of one replica's units: replica r
            of R gets units r·U/R to (r+1)·U/R, where R has to divide U.
        """
        context = input_context or tf.distribute.InputContext()
        rows = self._batch_size // context.num_replicas_in_sync
        local_replicas = context.num_replicas_in_sync // context.num_input_pipelines
        first = context.input_pipeline_id * local_replicas

        def parts():
            for batch in self(start_step):
                for replica in range(first, first + local_replicas):
                    part = slice(replica * rows, (replica + 1) * rows)
                    yield {name: x[part] for name, x in batch.items()}

        signature = {}
        for name, x in next(self(0)).items():
            signature[name] = tf.TensorSpec([rows, *x.shape[1:]], x.dtype)
        dataset = tf.data.Dataset.from_generator(parts, output_signature=signature)
        # With a known end, a strategy of several workers would expect a partial batch and make the
        # number of rows unknown.
        dataset = dataset.apply(
            tf.data.experimental.assert_cardinality(tf.data.INFINITE_CARDINALITY)
        )
        return dataset.prefetch(4 * local_replicas)
