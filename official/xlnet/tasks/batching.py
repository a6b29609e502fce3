"""Units of input to batches of one shape.

A unit is what one prediction comes from: one sequence, the options of a question, the windows
of a long text. Sequences are padded on the left.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np
import tensorflow as tf

from official.xlnet.tokenization.packing import PADDING_TOKEN_ID
from official.xlnet.tokenization.special_tokens import SEGMENT_PAD

Arrays = dict[str, np.ndarray]
# What stands in the padding of arrays that go along with tokens.
_PADDING = {
    "token_ids": PADDING_TOKEN_ID,
    "segment_ids": SEGMENT_PAD,
    "tags": -1,
}


@dataclasses.dataclass(slots=True)
class Unit:
    """One unit.

    Attributes:
      sequences: S dictionaries of arrays [number of tokens]: `token_ids`, `segment_ids` and what
        else goes along with tokens; {} for a sequence that is all padding.
      labels: arrays without token axis.
      weight: of the unit in the loss.
    """

    sequences: list[Arrays]
    labels: Arrays
    weight: float = 1.0

    @property
    def length(self) -> int:
        """Tokens of its longest sequence."""
        return max(len(s["token_ids"]) if s else 0 for s in self.sequences)


def collate(units: Sequence[Unit], length: int, num_units: int) -> Arrays:
    """A batch.

    Args:
      units: at least one and at most `num_units` units that have the same arrays.
      length: tokens T.
      num_units: units U of the batch; those that are missing are copies of the last one with
        weight 0.

    Returns:
      Arrays [U, S, T] that go along with tokens, labels [U, …], and `weight` float32 [U].
    """
    first = next(s for s in units[0].sequences if s)
    shape = num_units, len(units[0].sequences), length
    batch = {
        name: np.full(shape, _PADDING.get(name, 0), values.dtype) for name, values in first.items()
    }
    batch["is_padding"] = np.ones(shape, bool)
    for u in range(num_units):
        for s, sequence in enumerate(units[min(u, len(units) - 1)].sequences):
            for name, values in sequence.items():
                batch[name][u, s, length - len(values) :] = values
            if sequence:
                batch["is_padding"][u, s, length - len(sequence["token_ids"]) :] = False
    rows = [*units, *[units[-1]] * (num_units - len(units))]
    for name in units[0].labels:
        batch[name] = np.stack([np.asarray(unit.labels[name]) for unit in rows])
    weights = [unit.weight for unit in units]
    batch["weight"] = np.array(weights + [0.0] * (num_units - len(units)), np.float32)
    return batch


def bucket(length: int, lengths: Sequence[int]) -> int:
    """Index of the shortest of ascending `lengths` that holds `length`."""
    return min(int(np.searchsorted(lengths, length)), len(lengths) - 1)


def epoch_batches(
    unit_lengths: Sequence[int],
    groups: Sequence[int],
    lengths: Sequence[int],
    batch_size: int,
    seed: int,
    epoch: int,
) -> list[np.ndarray]:
    """The batches of an epoch: which units, in which order.

    Every unit is in one batch. Units of a batch are of one bucket, but for what is left over in
    the end; they are always of one group. The number of batches is the same in every epoch.

    Args:
      unit_lengths: tokens of every unit.
      groups: group of every unit; batches hold one group each.
      lengths: bucket lengths.
      batch_size: units of a batch; the last ones may have fewer.
      seed: seed.
      epoch: number of the epoch.

    Returns:
      Indices of units, batch by batch.
    """
    rng = np.random.default_rng([seed, epoch])
    order = rng.permutation(len(unit_lengths))
    bucket_of = np.array([bucket(length, lengths) for length in unit_lengths], np.int64)
    batches = []
    group_of = np.asarray(groups)
    for group in np.unique(group_of):
        rest = []
        for number in range(len(lengths)):
            members = order[(bucket_of[order] == number) & (group_of[order] == group)]
            full = len(members) // batch_size * batch_size
            batches += list(members[:full].reshape(-1, batch_size))
            rest += list(members[full:])
        batches += [np.array(rest[i : i + batch_size]) for i in range(0, len(rest), batch_size)]
    return [batches[i] for i in rng.permutation(len(batches))]


class TrainingBatches:
    """Endless batches of training units, a function of the step.

    Args:
      units: the units; or a function of the epoch that gives them.
      length: tokens T of every batch.
      lengths: bucket lengths, the last one is T.
      batch_size: units U of a batch.
      seed: seed of the order.
    """

    def __init__(self, units, length: int, lengths: Sequence[int], batch_size: int, seed: int):
        self._units_of = units if callable(units) else lambda epoch: units
        self._length, self._lengths = length, list(lengths)
        self._batch_size, self._seed = batch_size, seed
        self.steps_per_epoch = len(self._plan(self._units_of(0), 0))

    def _plan(self, units: Sequence[Unit], epoch: int) -> list[np.ndarray]:
        return epoch_batches(
            [unit.length for unit in units],
            [int(unit.labels.get("subtask", 0)) for unit in units],
            self._lengths,
            self._batch_size,
            self._seed,
            epoch,
        )

    def __call__(self, start_step: int) -> Iterator[Arrays]:
        """Yields the batches from a step on."""
        epoch, skipped = divmod(start_step, self.steps_per_epoch)
        while True:
            units = self._units_of(epoch)
            for indices in self._plan(units, epoch)[skipped:]:
                yield collate([units[i] for i in indices], self._length, self._batch_size)
            epoch, skipped = epoch + 1, 0

    def dataset(self, start_step: int) -> tf.data.Dataset:
        """The batches from a step on, made ahead of their use."""
        example = next(self(0))
        signature = {name: tf.TensorSpec(x.shape, x.dtype) for name, x in example.items()}
        dataset = tf.data.Dataset.from_generator(
            lambda: self(start_step), output_signature=signature
        )
        options = tf.data.Options()
        options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
        return dataset.prefetch(4).with_options(options)
