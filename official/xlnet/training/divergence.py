"""Diagnosis of divergence: non-finite losses and gradients, and loss spikes."""

from __future__ import annotations

import math

from official.xlnet.errors import DivergedError
from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
from official.xlnet.runtime.metrics_log import RunLog
from official.xlnet.training import replay
from official.xlnet.training.run_data import RunData

_MOST_BAD_STEPS = 10  # Consecutive non-finite steps after which a run stops even when skipping.
_SPIKE_DEVIATIONS = 6.0
_SETTLED_STEPS = 100  # Spike detection is off for the first steps and after each spike.
_SMOOTHING = 0.02  # Weight of the newest loss in the running mean and variance.
_NUM_WORST = 5  # Windows that are listed for a spike.


class Watch:
    """Reports loss spikes and steps with non-finite values, with the windows that they are from.

    A loss spike is a loss more than 6 standard deviations above the running mean. Mean and
    deviation are exponential moving averages over about the last hundred steps.

    Args:
      model: the model being trained.
      data: the windows of each step.
      log: receives the events.
      skip: whether steps with non-finite values are skipped rather than raised.
    """

    def __init__(self, model: XLNetPretrainer, data: RunData, log: RunLog, skip: bool):
        self._model, self._data, self._log, self._skip = model, data, log, skip
        self._num_bad = 0
        self._num_settled = 0
        self._mean = self._variance = 0.0

    def bad(self, first_step: int, step: int, loss: float, gradient_norm: float) -> None:
        """Reports steps with a loss or gradient norm that is not finite.

        Args:
          first_step: first step of the execution.
          step: last step of the execution.
          loss: mean loss over the steps, in nats per target.
          gradient_norm: mean global gradient norm over the steps, before clipping.

        Raises:
          DivergedError: steps are not skipped, or 10 in a row were.
        """
        self._num_bad += 1
        steps = range(first_step, step + 1)
        windows = [window for number in steps for window in self._data.windows(number)]
        finding = replay.Finding("", [])
        for number in steps:
            finding = replay.first_bad_value(self._model, self._data.batch(number))
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

    def good(self, first_step: int, step: int, loss: float) -> None:
        """Reports a loss spike.

        Args:
          first_step: first step of the execution.
          step: last step of the execution.
          loss: mean loss over the steps, in nats per target.
        """
        self._num_bad = 0
        deviation = math.sqrt(self._variance)
        settled = self._num_settled >= _SETTLED_STEPS
        if settled and loss > self._mean + _SPIKE_DEVIATIONS * deviation:
            worst = replay.worst_windows(self._model, self._data.batch(step), _NUM_WORST)
            self._log.event(
                "loss spike",
                step=step,
                loss=round(loss, 4),
                mean=round(self._mean, 4),
                deviation=round(deviation, 4),
                worst_windows=[[window, round(nats, 4)] for window, nats in worst],
                windows=self._data.windows(step),
            )
            self._num_settled = 0
        self._num_settled += step - first_step + 1
        weight = max(_SMOOTHING, 1 / self._num_settled)
        change = loss - self._mean
        self._mean += weight * change
        self._variance = (1 - weight) * (self._variance + weight * change * change)
