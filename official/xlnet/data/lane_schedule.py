"""Schedule of lanes over batch rows, and the position of a run in its data.

A batch row reads the windows of a lane in order, so that the memory of a row always belongs to the
preceding windows of the same lane. Lanes are numbered consecutively over all epochs: number g is
lane `g mod num_lanes` in epoch `g div num_lanes`. A row that reaches the end of its lane continues
with the next number; rows that finish at the same step are assigned in row order. With W windows
per lane, 6 lanes and a batch size of 4:

    num_lanes 6, B 4        row 0    row 1    row 2    row 3
    steps 0 … W-1           lane 0   lane 1   lane 2   lane 3     epoch 0
    steps W … 2W-1          lane 4   lane 5   lane 0   lane 1     lanes 0 and 1: epoch 1
    steps 2W … 3W-1         lane 2   lane 3   lane 4   lane 5     epoch 1

Hence every window is read exactly once per epoch. If B is even, a row always reads text of the
same direction, since odd lanes hold reversed text.

A run can be resumed with a different batch size. The partially read lanes of removed rows are
queued; the first row to become free continues such a lane at its next window, with an empty
memory. No window is skipped or read twice.
"""

from __future__ import annotations

import dataclasses
import heapq
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from official.xlnet.errors import DataError
from official.xlnet.files.schema import conform


class LanePosition(NamedTuple):
    """A partially read lane.

    Attributes:
      number: number of the lane, counted over all epochs.
      window: index of the next window to read.
      memory_from: index of the first window whose hidden states are in the memory.
    """

    number: int
    window: int
    memory_from: int

    def without_memory(self) -> LanePosition:
        """Returns the same place in the lane, where nothing before is remembered."""
        return self._replace(memory_from=self.window)


@dataclasses.dataclass(frozen=True)
class Position:
    """Position of a run in its data; saved in checkpoints to resume exactly.

    Attributes:
      rows: lane that each row continues; None for a row that starts the next unread lane.
      waiting: queue of partially read lanes that are not assigned to a row.
      next_number: number of the first unread lane.
    """

    rows: tuple[LanePosition | None, ...]
    waiting: tuple[LanePosition, ...] = ()
    next_number: int = 0

    @classmethod
    def start(cls, batch_size: int) -> Position:
        """Returns the position of a new run."""
        return cls(rows=(None,) * batch_size)

    def resized(self, batch_size: int) -> Position:
        """Returns the same position for another batch size; rows are added or removed at the end.

        Args:
          batch_size: the new batch size, B.
        """
        rows = (self.rows + (None,) * batch_size)[:batch_size]
        left = (lane.without_memory() for lane in self.rows[batch_size:] if lane is not None)
        return Position(rows, (*self.waiting, *left), self.next_number)

    def without_memory(self) -> Position:
        """Returns the same position, whose rows remember nothing of what they have read."""
        rows = (lane and lane.without_memory() for lane in self.rows)
        return dataclasses.replace(self, rows=tuple(rows))

    def as_dict(self) -> dict[str, Any]:
        """Returns a JSON-serializable dictionary."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, tree: dict[str, Any]) -> Position:
        """Creates a position from the result of `as_dict`.

        Raises:
          DataError: the tree is not a position.
        """
        tree = conform(tree, dict[str, Any], "position")
        rows, waiting = (
            conform(tree.get(key), list[list[int] | None], f"position: {key}")
            for key in ("rows", "waiting")
        )
        try:
            return cls(
                rows=tuple(None if lane is None else LanePosition(*lane) for lane in rows),
                waiting=tuple(LanePosition(*lane) for lane in waiting),
                next_number=conform(tree.get("next_number"), int, "position: next_number"),
            )
        except TypeError:
            raise DataError("position: expected three numbers for each lane") from None


class LaneSchedule:
    """Maps (step, row) to the window to read, starting from a position.

    Each row first finishes the partially read lanes assigned to it. It starts its first new lane
    at step `fresh_from`; from then on, with rows ranked by that step,

        number = next_number + B · ((step - fresh_from) div W) + rank
        window = (step - fresh_from) mod W

    Args:
      position: the position at step 0.
      windows_per_lane: number of windows per lane, W.
    """

    def __init__(self, position: Position, windows_per_lane: int):
        self._windows_per_lane = windows_per_lane
        self._position = position
        # For each row, (first step, lane).
        self._old = [[] if lane is None else [(0, lane)] for lane in position.rows]
        free = [
            (sum(windows_per_lane - lane.window for _, lane in old), row)
            for row, old in enumerate(self._old)
        ]
        heapq.heapify(free)
        for lane in position.waiting:
            step, row = free[0]
            self._old[row].append((step, lane))
            heapq.heapreplace(free, (step + windows_per_lane - lane.window, row))
        fresh_from, order = zip(*sorted(free), strict=True)
        self._rank_B = np.argsort(order)
        self._fresh_from_B = np.array(fresh_from, np.int64)[self._rank_B]

        width = max(1, *map(len, self._old))
        never = (np.iinfo(np.int64).max, LanePosition(0, 0, 0))
        padded = [lanes + [never] * (width - len(lanes)) for lanes in self._old]
        self._old_from_BS = np.array([[step for step, _ in row] for row in padded])
        self._old_BSC = np.array([[lane for _, lane in row] for row in padded])

    def at(self, step: tf.Tensor, row: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Returns the windows that some rows read at a step.

        Args:
          step: int64 scalar, relative to the position.
          row: int64 [X], indices of rows.

        Returns:
          number: int64 [X], number of the lane, counted over all epochs.
          window: int64 [X], index of the window in the lane.
          memory_from: int64 [X], index of the first window whose hidden states are in the memory.
        """
        batch_size = len(self._rank_B)
        since_X = step - tf.gather(self._fresh_from_B, row)
        fresh_number_X = (
            self._position.next_number
            + batch_size * (since_X // self._windows_per_lane)
            + tf.gather(self._rank_B, row)
        )
        begun_XS = tf.gather(self._old_from_BS, row) <= step
        index_X = tf.maximum(tf.reduce_sum(tf.cast(begun_XS, tf.int64), axis=1) - 1, 0)
        index_X2 = tf.stack([row, index_X], axis=1)
        old_number_X, old_window_X, memory_from_X = tf.unstack(
            tf.gather_nd(self._old_BSC, index_X2), axis=1
        )
        old_window_X += step - tf.gather_nd(self._old_from_BS, index_X2)
        is_fresh_X = since_X >= 0
        return (
            tf.where(is_fresh_X, fresh_number_X, old_number_X),
            tf.where(is_fresh_X, since_X % self._windows_per_lane, old_window_X),
            tf.where(is_fresh_X, tf.zeros_like(memory_from_X), memory_from_X),
        )

    def step_windows(self, step: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Returns `at` for all rows, as NumPy arrays int64 [B]."""
        rows = np.arange(len(self._rank_B))
        number_B, window_B, memory_from_B = self.at(tf.constant(step, tf.int64), rows)
        return number_B.numpy(), window_B.numpy(), memory_from_B.numpy()

    def position(self, step: int) -> Position:
        """Returns the position after `step` steps."""
        lanes = (x.tolist() for x in self.step_windows(step))
        since_B = np.maximum(step - self._fresh_from_B, 0)
        num_fresh = int(np.sum(-(-since_B // self._windows_per_lane)))
        waiting = sorted(
            (first, row, lane)
            for row, old in enumerate(self._old)
            for first, lane in old
            if first > step
        )
        return Position(
            rows=tuple(
                LanePosition(*lane) if lane[1] else None for lane in zip(*lanes, strict=True)
            ),
            waiting=tuple(lane for _, _, lane in waiting),
            next_number=self._position.next_number + num_fresh,
        )
