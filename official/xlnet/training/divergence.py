"""Steps out of the ordinary: losses that are no numbers, and losses that jump."""

from __future__ import annotations

import math
from collections.abc import Callable

import tensorflow as tf

from official.xlnet.data.lane_schedule import LaneSchedule
from official.xlnet.errors import DivergedError
from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
from official.xlnet.runtime.metrics_log import RunLog
from official.xlnet.training import replay

_MOST_BAD_STEPS = 10  # In a row; after so many skipping is no use.
_SPIKE_DEVIATIONS = 6.0
_SETTLED_STEPS = 100  # Before that, and after a spike, losses are not judged.
_SMOOTHING = 0.02
_NUM_WORST = 5


class Watch:
    """Looks at the figures of each step.

    A loss is a spike where it is more than 6 standard deviations above the running mean, both
    over the last hundred steps or so.

    Args:
      model: the model in training.
      schedule: which windows are read when.
      num_lanes: lanes of the data set.
      windows_per_lane: windows of each.
      read_batch: reads the batch of a step, counted from the schedule's position.
      log: where events go.
      start_step: the step of the schedule's position.
      skip: whether a bad step is passed over.
    """

    def __init__(
        self,
        model: XLNetPretrainer,
        schedule: LaneSchedule,
        num_lanes: int,
        windows_per_lane: int,
        read_batch: Callable[[int], dict[str, tf.Tensor]],
        log: RunLog,
        start_step: int,
        skip: bool,
    ):
        self._model = model
        self._schedule = schedule
        self._num_lanes = num_lanes
        self._windows_per_lane = windows_per_lane
        self._read_batch = read_batch
        self._log = log
        self._start_step = start_step
        self._skip = skip
        self._num_bad = 0
        self._num_judged = 0
        self._mean = self._variance = 0.0

    def see(self, first_step: int, step: int, loss: float, gradient_norm: float) -> bool:
        """Judges an execution.

        Args:
          first_step: its first step.
          step: its last step.
          loss: their mean loss.
          gradient_norm: their mean gradient norm.

        Returns:
          Whether its figures are numbers.

        Raises:
          DivergedError: they are not, and bad steps are not to be skipped.
        """
        if math.isfinite(loss) and math.isfinite(gradient_norm):
            self._num_bad = 0
            self._judge(first_step, step, loss)
            return True
        self._num_bad += 1
        steps = range(first_step, step + 1)
        windows = [window for number in steps for window in self._windows(number)]
        finding = replay.Finding("", [])
        for number in steps:
            finding = replay.first_bad_value(self._model, self._batch(number))
            if finding.where:
                break
        suspects = finding.windows or windows
        where = finding.where or "a place that was not found again without dropout and memory"
        self._log.event(
            "bad step",
            step=step,
            loss=repr(loss),
            gradient_norm=repr(gradient_norm),
            first_bad_value=where,
            windows=suspects,
        )
        if not self._skip or self._num_bad >= _MOST_BAD_STEPS:
            ids = ", ".join(map(str, suspects[:8])) + (", …" if len(suspects) > 8 else "")
            raise DivergedError(
                f"step {step}: loss {loss}, gradient norm {gradient_norm}; the first bad value is "
                f"in {where}; windows {ids}; the weights are those before the step"
            )
        return False

    def _judge(self, first_step: int, step: int, loss: float) -> None:
        deviation = math.sqrt(self._variance)
        settled = self._num_judged >= _SETTLED_STEPS
        if settled and loss > self._mean + _SPIKE_DEVIATIONS * deviation:
            worst = replay.worst_windows(self._model, self._batch(step), _NUM_WORST)
            self._log.event(
                "loss spike",
                step=step,
                loss=round(loss, 4),
                mean=round(self._mean, 4),
                deviation=round(deviation, 4),
                worst_windows=[[window, round(nats, 4)] for window, nats in worst],
                windows=self._windows(step),
            )
            self._num_judged = 0
        self._num_judged += step - first_step + 1
        weight = max(_SMOOTHING, 1 / self._num_judged)
        change = loss - self._mean
        self._mean += weight * change
        self._variance = (1 - weight) * (self._variance + weight * change * change)

    def _windows(self, step: int) -> list[int]:
        """Ids of the windows of a step."""
        number_B, window_B, _ = self._schedule.step_windows(step - self._start_step - 1)
        return (number_B % self._num_lanes * self._windows_per_lane + window_B).tolist()

    def _batch(self, step: int) -> dict[str, tf.Tensor]:
        return self._read_batch(step - self._start_step - 1)
