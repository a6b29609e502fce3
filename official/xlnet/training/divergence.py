"""Divergence detection: non-finite losses and gradients, and loss spikes."""

from __future__ import annotations

import math
from collections.abc import Callable

import tensorflow as tf

from official.xlnet.data.lane_schedule import LaneSchedule
from official.xlnet.errors import DivergedError
from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
from official.xlnet.runtime.metrics_log import RunLog
from official.xlnet.training import replay
from official.xlnet.training.overflow import OverflowDetector

_MOST_BAD_STEPS = 10  # Consecutive non-finite steps after which a run stops even when skipping.
_SPIKE_DEVIATIONS = 6.0
_SETTLED_STEPS = 100  # Spike detection is off for the first steps and after each spike.
_SMOOTHING = 0.02  # Weight of the newest loss in the running mean and variance.
_NUM_WORST = 5  # Windows that are listed for a spike.


class Watch:
    """Checks the metrics of each step for non-finite values and loss spikes.

    A loss spike is a loss more than 6 standard deviations above the running mean. Mean and
    deviation are exponential moving averages over about the last hundred steps.

    Steps that dynamic loss scaling skips because of an overflow are reported, not raised: the
    next step has a lower scale.

    Args:
      model: the model being trained.
      schedule: window schedule, positioned at `start_step`.
      num_lanes: number of lanes of the data set.
      windows_per_lane: number of windows per lane.
      read_batch: reads the batch of a step, counted from `start_step`.
      log: receives the events.
      start_step: step at which the run starts or resumes.
      skip: whether steps with non-finite values are skipped rather than raised.
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
        self._overflows = OverflowDetector(model)
        self._num_bad = 0
        self._num_settled = 0
        self._mean = self._variance = 0.0

    def see(self, first_step: int, step: int, loss: float, gradient_norm: float) -> bool:
        """Checks the metrics of one execution of one or more steps.

        Args:
          first_step: first step of the execution.
          step: last step of the execution.
          loss: mean loss over the steps, in nats per target.
          gradient_norm: mean global gradient norm over the steps, before clipping.

        Returns:
          Whether loss and gradient norm are finite, i.e. no step was skipped.

        Raises:
          DivergedError: a value is not finite and steps are not skipped, or 10 steps in a row
            were skipped.
        """
        overflowed = self._overflows.overflowed()
        if overflowed and math.isfinite(loss):
            self._log.event("overflow", step=step, loss_scale=self._overflows.loss_scale)
            return False
        if math.isfinite(loss) and math.isfinite(gradient_norm):
            self._num_bad = 0
            self._detect_spike(first_step, step, loss)
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
        where = finding.where or "not reproduced without dropout and memory"
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
                f"step {step}: loss {loss}, gradient norm {gradient_norm}, expected finite values; "
                f"first non-finite value: {where}; windows {ids}; "
                "the weights are those before the step"
            )
        return False

    def _detect_spike(self, first_step: int, step: int, loss: float) -> None:
        deviation = math.sqrt(self._variance)
        settled = self._num_settled >= _SETTLED_STEPS
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
            self._num_settled = 0
        self._num_settled += step - first_step + 1
        weight = max(_SMOOTHING, 1 / self._num_settled)
        change = loss - self._mean
        self._mean += weight * change
        self._variance = (1 - weight) * (self._variance + weight * change * change)

    def _windows(self, step: int) -> list[int]:
        """Returns the ids of the windows in the batch of a step."""
        number_B, window_B, _ = self._schedule.step_windows(step - self._start_step - 1)
        return (number_B % self._num_lanes * self._windows_per_lane + window_B).tolist()

    def _batch(self, step: int) -> dict[str, tf.Tensor]:
        return self._read_batch(step - self._start_step - 1)
