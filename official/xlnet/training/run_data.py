"""Input data of a pre-training run: resumable batches for every replica."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from official.xlnet.checkpoints.checkpoint_files import SavedState
from official.xlnet.configs.training import TrainingConfig
from official.xlnet.data.lane_schedule import LaneSchedule, Position
from official.xlnet.data.pretraining_dataset import Records
from official.xlnet.errors import ConfigError, require_config, require_data
from official.xlnet.files.json_files import json_text
from official.xlnet.files.schema import conform


@dataclasses.dataclass
class Part:
    """A data set of a run, and the rows of each batch that read it.

    Attributes:
      records: the data set.
      rows: number of rows.
      first_id: offset of the ids of its windows, so that no two data sets share an id.
      position: the position of its rows at the start; set by `go_to`.
    """

    records: Records
    rows: int
    first_id: int = 0
    position: Position = dataclasses.field(default_factory=lambda: Position.start(0))

    def __post_init__(self):
        """Verifies the record files, before anything is written."""
        self.lanes = self.records.split("train")
        self.shape = [self.lanes.num_lanes, self.lanes.windows_per_lane]
        self.records.verify(self.rows)

    def go_to(self, saved: dict[str, Any] | None, where: str, remembers: bool) -> None:
        """Moves to a position, whose rows may have a memory; see `RunData.go_to`."""
        self.position = Position.start(self.rows)
        if saved is not None:
            expected = conform(saved.get("lanes_and_windows"), list[int], where)
            require_data(
                self.shape == expected,
                self.records.path,
                f"the data set that the run started with, with {expected} lanes and windows "
                "per lane",
                self.shape,
            )
            self.position = Position.from_dict(saved["position"]).resized(self.rows)
            if not remembers:
                self.position = self.position.without_memory()
        self.schedule = LaneSchedule(self.position, self.shape[1])

    def record(self, steps: int) -> dict[str, Any]:
        """Returns the position after some steps, as JSON."""
        position = self.schedule.position(steps).as_dict()
        return {"position": position, "lanes_and_windows": self.shape}

    def batches(self, **options: Any) -> tf.data.Dataset:
        """Returns the batches after the position; for the options see `Records.batches`."""
        data = self.records.batches(self.rows, position=self.position, **options)
        if not self.first_id:
            return data

        def shift_ids(batch: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
            return batch | {
                "window_id": batch["window_id"] + self.first_id,
                "follows": batch["follows"] + self.first_id,
            }

        return data.map(shift_ids)

    def windows(self, steps: int) -> list[int]:
        """Returns the ids of the windows that are read after some steps."""
        num_lanes, windows_per_lane = self.shape
        number_B, window_B, _ = self.schedule.step_windows(steps)
        lane_B = number_B % num_lanes
        return (lane_B * windows_per_lane + window_B + self.first_id).tolist()


class RunData:
    """Training and held-out data of a run, with the position of the run in the data.

    Each of several data sets has its share of the rows of every batch, so a row continues the text
    that it has read before. The first data set is evaluated.

    Args:
      training: batch size, micro-batches and evaluation.
      records: the data set, or several.
      strategy: distribution strategy of the run.
      shares: the share of each data set.

    Attributes:
      records: the data set, or the first.
      parts: the data sets, with the rows of each.
      lanes: manifest entry of the training split, with the windows of all data sets.
      checksum: checksum of the training records, and of the shares of several.
      start_step: step at which the run starts or resumes; set by `go_to`.

    Raises:
      ConfigError: replicas and micro-batches cannot share a batch equally, a batch has too few rows
        for the data sets, or held-out evaluation is on and there is no held-out split.
    """

    def __init__(
        self,
        training: TrainingConfig,
        records: Records | Sequence[Records],
        strategy: tf.distribute.Strategy,
        shares: Sequence[int] = (1,),
    ):
        data_sets = list(records) if isinstance(records, Sequence) else [records]
        self._batch_size, self._strategy = training.batch_size, strategy
        self.records = data_sets[0]
        replicas, even = strategy.num_replicas_in_sync, data_sets[0].manifest.bidirectional
        training.require_shares(replicas, even=even)
        rows = rows_of(shares, self._batch_size, replicas * (2 if even else 1))
        # Where the rows of each of several data sets are in the memory of a checkpoint.
        self._places = [replicas, *rows]
        self.parts: list[Part] = []
        for data_set, num_rows in zip(data_sets, rows, strict=True):
            first_id = sum(part.lanes.windows for part in self.parts)
            self.parts.append(Part(data_set, num_rows, first_id))
        self.lanes = self.parts[0].lanes
        if len(data_sets) > 1:
            total = sum(part.lanes.windows for part in self.parts)
            self.lanes = dataclasses.replace(self.lanes, windows=total)
        files = [part.lanes.files for part in self.parts]
        identity = files[0] if len(files) == 1 else [files, list(shares)]
        self.checksum = hashlib.sha256(json_text(identity).encode()).hexdigest()
        if training.evaluation_steps:
            heldout = self.records.manifest.splits.get("heldout")
            if heldout is None:
                raise ConfigError(
                    f"training.evaluation_steps: expected 0, as {self.records.path} has no "
                    "held-out split (xlnet prepare makes one with a larger data.heldout_fraction), "
                    f"got {training.evaluation_steps}"
                )
            size = self.records.largest_batch("heldout", self._batch_size, replicas)
            self.records.verify(size, "heldout", epochs=1)
            self._heldout_batch_size = size

    @property
    def paths(self) -> list[str]:
        """Directories of the data sets."""
        return [part.records.path for part in self.parts]

    def go_to(self, step: int, saved: SavedState | None, has_memory: bool = True) -> None:
        """Moves to the data position of a step.

        Args:
          step: step at which the run starts or resumes.
          saved: checkpoint to resume from, or None for a new run.
          has_memory: whether the checkpoint holds the memory of the rows.

        Raises:
          DataError: the checkpoint was made with a data set with other lanes.
        """
        self.start_step = step
        positions: list[Any] = [None] * len(self.parts)
        where, remembers = "", len(self.parts) == 1
        if saved is not None:
            where = saved.prefix
            remembers |= saved.record.get("places") == self._places
            remembers &= has_memory
            positions = [saved.record, *conform(saved.record.get("others", []), list[dict], where)]
        for part, record in zip(self.parts, positions, strict=True):
            part.go_to(record, where, remembers)

    def record(self, step: int) -> dict[str, Any]:
        """Returns the data position at a step, as JSON to be stored with a checkpoint."""
        position, *others = [part.record(step - self.start_step) for part in self.parts]
        if others:
            position |= {"others": others, "places": self._places}
        return position

    def first_windows(self, num_windows: int) -> Iterator[dict[str, tf.Tensor]]:
        """Yields about `num_windows` windows: the first of each data set, by their shares."""
        for part in self.parts:
            yield from part.records.first_windows(-(-num_windows * part.rows // self._batch_size))

    def _batches(self, **options: Any) -> tf.data.Dataset:
        parts = [part.batches(**options) for part in self.parts]
        if len(parts) == 1:
            return parts[0]

        def join_rows(*parts: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
            return {name: tf.concat([part[name] for part in parts], axis=0) for name in parts[0]}

        return tf.data.Dataset.zip(tuple(parts)).map(
            join_rows,
            num_parallel_calls=tf.data.AUTOTUNE,
            deterministic=True,
        )

    def training(self) -> tf.data.Dataset:
        """Returns the training batches from `start_step` on, distributed over the replicas."""
        return self._strategy.distribute_datasets_from_function(
            lambda context: self._batches(input_context=context)
        )

    def batch(self, step: int) -> dict[str, tf.Tensor]:
        """Returns the global batch of a step after `start_step`."""
        return next(iter(self._batches(start_step=step - self.start_step - 1)))

    def windows(self, step: int) -> list[int]:
        """Returns the ids of the windows in the batch of a step after `start_step`.

        Ids of a data set follow the ids of the data sets before it.
        """
        steps = step - self.start_step - 1
        return [window for part in self.parts for window in part.windows(steps)]

    @functools.cached_property
    def heldout(self) -> tuple[tf.data.Dataset, int]:
        """Held-out batches, from the start in each iteration, and their number in an epoch."""
        data = self._strategy.distribute_datasets_from_function(
            lambda context: self.records.batches(
                self._heldout_batch_size, "heldout", input_context=context
            ).repeat()  # With several workers, TensorFlow does not know where finite data ends.
        )
        num_windows = self.records.manifest.splits["heldout"].windows
        return data, num_windows // self._heldout_batch_size


def rows_of(shares: Sequence[int], batch_size: int, unit: int) -> list[int]:
    """Rows of a batch for each of several data sets, as near to their shares as can be.

    Args:
      shares: the share of each.
      batch_size: number of rows of a batch, a multiple of `unit`.
      unit: the rows of a data set are a multiple of it, and at least that.

    Raises:
      ConfigError: there are not enough rows.

    Example:
      >>> rows_of([3, 1], batch_size=16, unit=2)
      [12, 4]
    """
    require_config(
        batch_size >= unit * len(shares),
        "training.batch_size",
        f"at least {unit * len(shares)}, {unit} rows for each of {len(shares)} data sets",
        batch_size,
    )
    units = np.ones(len(shares), int)
    for _ in range(batch_size // unit - len(shares)):
        units[np.argmin(units / shares)] += 1
    return (units * unit).tolist()
