"""Health of a pre-training run: whether it learns more than token frequencies, and loss spikes."""

from __future__ import annotations

import collections
import dataclasses
import math
from collections.abc import Iterable

import numpy as np
import tensorflow as tf

from official.xlnet.runtime.metrics_log import RunLog
from official.xlnet.training.run_data import RunData

_RECENT_STEPS = 100  # The loss of a run is the mean over these steps.
_FIRST_STEPS = 1000  # A run should beat the baseline by then, or after twice its warm-up.
_MARGIN = 0.05  # Nats per target; the baseline is an estimate.

_SPIKE_DEVIATIONS = 6.0
_SETTLED_STEPS = 100  # Spike detection is off for the first steps and after each spike.
_SMOOTHING = 0.02  # Weight of the newest loss in the running mean and variance.


def unigram_distribution(batches: Iterable[dict[str, tf.Tensor]], vocab_size: int) -> np.ndarray:
    """Unigram distribution of the windows of batches, with add-one (Laplace) smoothing.

        p(v) = (count(v) + 1) / (Σ counts + V)

    Special tokens are not counted.

    Args:
      batches: batches, as `pretraining_dataset` yields them.
      vocab_size: V.

    Returns:
      Probabilities, float64 [V].
    """
    counts_V = np.ones(vocab_size)
    for batch in batches:
        tokens = batch["token_ids"].numpy()[batch["can_be_target"].numpy()]
        counts_V += np.bincount(tokens, minlength=vocab_size)
    return counts_V / counts_V.sum()


class UnigramBaseline:
    """Checks whether a pre-training run has learned more than token frequencies.

    A model learns these first, and its loss stays at the baseline until attention begins to work.
    A learning rate that is too high or too low keeps it there.

    Args:
      p_V: unigram distribution, float64 [V].
      warmup_steps: warm-up steps of the run.
      last_step: step at which the run stops.

    Attributes:
      loss: entropy of the distribution, in nats per token.
    """

    def __init__(self, p_V: np.ndarray, warmup_steps: int, last_step: int):
        self.loss = float(-np.sum(p_V * np.log(p_V)))
        self._due = min(max(_FIRST_STEPS, 2 * warmup_steps), last_step)
        self._recent: collections.deque[float] = collections.deque(maxlen=_RECENT_STEPS)

    def is_checked(self, step: int) -> bool:
        """Whether a run at a step has been checked."""
        return step >= self._due

    def add(self, loss: float) -> None:
        """Adds the mean loss of an execution before this call, in nats per target."""
        self._recent.append(loss)

    def not_beaten(self, before: int, step: int, loss: float) -> float | None:
        """Checks the run once, at the step by which it should have left the baseline.

        Args:
          before: last step of the previous execution.
          step: last step of this execution.
          loss: mean loss of this execution, in nats per target.

        Returns:
          The recent loss if this is the step and the loss is no better than the baseline; None
          otherwise.
        """
        self.add(loss)
        recent = float(np.mean(self._recent))
        is_due = before < self._due <= step and self._due >= _RECENT_STEPS
        return recent if is_due and recent > self.loss - _MARGIN else None


@dataclasses.dataclass(frozen=True)
class RecentLoss:
    """Exponential moving average of the losses of a run; in the records of its checkpoints.

    Attributes:
      num_steps: number of steps since the first one, or the last spike.
      mean: mean, in nats per target.
      variance: variance.
    """

    num_steps: int = 0
    mean: float = 0.0
    variance: float = 0.0


class SpikeWatch:
    """Reports loss spikes, with their windows.

    A loss spike is a loss more than 6 standard deviations above the running mean. Mean and
    deviation are exponential moving averages over about the last hundred steps.

    Args:
      data: the windows of each step.
      log: receives the events.
      recent_loss: the losses before the steps to come; None for none.
    """

    def __init__(self, data: RunData, log: RunLog, recent_loss: RecentLoss | None = None):
        self._data, self._log = data, log
        saved = recent_loss or RecentLoss()
        self._num_settled = saved.num_steps
        self._mean, self._variance = saved.mean, saved.variance

    @property
    def recent_loss(self) -> RecentLoss:
        """Mean and variance of the recent losses."""
        return RecentLoss(self._num_settled, self._mean, self._variance)

    def add(self, first_step: int, step: int, loss: float) -> None:
        """Adds the loss of an execution; reports it if it is a spike.

        Args:
          first_step: first step of the execution.
          step: last step of the execution.
          loss: mean loss over the steps, in nats per target.
        """
        deviation = math.sqrt(self._variance)
        settled = self._num_settled >= _SETTLED_STEPS
        if settled and loss > self._mean + _SPIKE_DEVIATIONS * deviation:
            self._log.event(
                "loss spike",
                step=step,
                loss=round(loss, 4),
                mean=round(self._mean, 4),
                deviation=round(deviation, 4),
                windows=self._data.windows(step),
            )
            self._num_settled = 0
        self._num_settled += step - first_step + 1
        weight = max(_SMOOTHING, 1 / self._num_settled)
        change = loss - self._mean
        self._mean += weight * change
        self._variance = (1 - weight) * (self._variance + weight * change * change)
