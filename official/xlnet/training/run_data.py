"""Input data of a pre-training run: resumable batches for every replica."""

from __future__ import annotations

import functools
import hashlib
from typing import Any

import tensorflow as tf

from official.xlnet.checkpoints.checkpoint_files import SavedState
from official.xlnet.configs.training import TrainingConfig
from official.xlnet.data.lane_schedule import LaneSchedule, Position
from official.xlnet.data.pretraining_dataset import Records
from official.xlnet.errors import ConfigError, DataError
from official.xlnet.files.json_files import json_text
from official.xlnet.files.schema import conform


class RunData:
    """Training and held-out data of a run, with the position of the run in the data.

    Args:
      training: batch size, micro-batches and evaluation.
      records: the data set.
      strategy: distribution strategy of the run.

    Attributes:
      records: the data set.
      lanes: manifest entry of the training split.
      checksum: checksum of the training records.
      start_step: step at which the run starts or resumes; set by `go_to`.
      schedule: the windows of each step from `start_step` on; set by `go_to`.

    Raises:
      ConfigError: replicas and micro-batches cannot share a batch equally, or held-out evaluation
        is on and the data set has no held-out split.
    """

    def __init__(
        self,
        training: TrainingConfig,
        records: Records,
        strategy: tf.distribute.Strategy,
    ):
        self._batch_size = training.batch_size
        self.records = records
        self._strategy = strategy
        self.lanes = records.split("train")
        self.checksum = hashlib.sha256(json_text(self.lanes.files).encode()).hexdigest()
        replicas = strategy.num_replicas_in_sync
        training.require_shares(replicas, even=records.manifest.bidirectional)
        records.verify(self._batch_size)  # Before anything is written.
        self._heldout_batch_size = self._heldout_steps = 0
        if training.evaluation_steps:
            heldout = records.manifest.splits.get("heldout")
            if heldout is None:
                raise ConfigError(
                    f"training.evaluation_steps: expected 0, as {records.path} has no held-out "
                    "split (xlnet prepare makes one with a larger data.heldout_fraction), "
                    f"got {training.evaluation_steps}"
                )
            self._heldout_batch_size = records.largest_batch("heldout", self._batch_size, replicas)
            records.verify(self._heldout_batch_size, "heldout", epochs=1)
            self._heldout_steps = heldout.windows // self._heldout_batch_size

    def go_to(self, step: int, saved: SavedState | None) -> None:
        """Moves to the data position of a step.

        Args:
          step: step at which the run starts or resumes.
          saved: checkpoint to resume from, or None for a new run.

        Raises:
          DataError: the checkpoint is of a data set with other lanes.
        """
        self.start_step = step
        shape = [self.lanes.num_lanes, self.lanes.windows_per_lane]
        position = Position.start(self._batch_size)
        if saved is not None:
            expected = conform(saved.record.get("lanes_and_windows"), list[int], saved.prefix)
            if shape != expected:
                raise DataError(
                    f"{self.records.path}: expected the data set that the run started with, with "
                    f"{expected} lanes and windows per lane, got {shape}"
                )
            position = Position.from_dict(saved.record["position"]).resized(self._batch_size)
        self._position = position
        self.schedule = LaneSchedule(position, shape[1])

    def record(self, step: int) -> dict[str, Any]:
        """Returns the data position at a step, as JSON to be stored with a checkpoint."""
        return {
            "position": self.schedule.position(step - self.start_step).as_dict(),
            "lanes_and_windows": [self.lanes.num_lanes, self.lanes.windows_per_lane],
        }

    def training(self) -> tf.data.Dataset:
        """Returns the training batches from `start_step` on, distributed over the replicas."""
        return self._strategy.distribute_datasets_from_function(
            lambda context: self.records.batches(
                self._batch_size, input_context=context, position=self._position
            )
        )

    def batch(self, step: int) -> dict[str, tf.Tensor]:
        """Returns the global batch of a step after `start_step`."""
        index = step - self.start_step - 1
        data = self.records.batches(self._batch_size, start_step=index, position=self._position)
        return next(iter(data))

    def windows(self, step: int) -> list[int]:
        """Returns the ids of the windows in the batch of a step after `start_step`."""
        number_B, window_B, _ = self.schedule.step_windows(step - self.start_step - 1)
        lanes = self.lanes
        return (number_B % lanes.num_lanes * lanes.windows_per_lane + window_B).tolist()

    @functools.cached_property
    def heldout(self) -> tuple[tf.data.Dataset, int]:
        """Held-out batches, from the start in each iteration, and their number in an epoch."""
        data = self._strategy.distribute_datasets_from_function(
            lambda context: self.records.batches(
                self._heldout_batch_size, "heldout", input_context=context
            ).repeat()  # Of finite data, several workers would not know the number of rows.
        )
        return data, self._heldout_steps
