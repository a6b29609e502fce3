"""Health of a pre-training run: whether it learns, and where it diverges.

The loss is compared with the unigram baseline, spikes are reported with their windows, and a step
with non-finite values with the first layer that has one.
"""

from __future__ import annotations

import collections
import dataclasses
import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import tensorflow as tf

from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
from official.xlnet.runtime.metrics_log import RunLog
from official.xlnet.training.run_data import RunData

_RECENT_STEPS = 100  # The loss of a run is the mean over these steps.
_FIRST_STEPS = 1000  # A run should beat the baseline by then, or after twice its warm-up.
_MARGIN = 0.05  # Nats per target; the baseline is an estimate.

_SPIKE_DEVIATIONS = 6.0
_SETTLED_STEPS = 100  # Spike detection is off for the first steps and after each spike.
_SMOOTHING = 0.02  # Weight of the newest loss in the running mean and variance.
_ROWS = 8  # Rows per forward pass.
_NOT_FOUND = "not reproduced without dropout and memory"


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


class Watch:
    """Reports loss spikes, and finds causes of non-finite values, with their windows.

    A loss spike is a loss more than 6 standard deviations above the running mean. Mean and
    deviation are exponential moving averages over about the last hundred steps.

    Args:
      model: the model being trained.
      data: the windows of each step.
      log: receives the events.
      recent_loss: the losses before the steps to come; None for none.
    """

    def __init__(
        self,
        model: XLNetPretrainer,
        data: RunData,
        log: RunLog,
        recent_loss: RecentLoss | None = None,
    ):
        self._model, self._data, self._log = model, data, log
        saved = recent_loss or RecentLoss()
        self._num_settled = saved.num_steps
        self._mean, self._variance = saved.mean, saved.variance

    @property
    def recent_loss(self) -> RecentLoss:
        """Mean and variance of the recent losses."""
        return RecentLoss(self._num_settled, self._mean, self._variance)

    def diagnose(self, first_step: int, step: int) -> dict[str, Any]:
        """Finds the cause of a loss or gradient norm that is not finite.

        Args:
          first_step: first step of the execution.
          step: last step of the execution.

        Returns:
          `first_bad_value`, see the function, of the first step that has one, and the ids of its
          `windows`; those of all steps if the bad value does not depend on them.
        """
        steps = range(first_step, step + 1)
        where = _NOT_FOUND
        windows: list[int] = []
        for step_number in steps:
            result = first_bad_value(self._model, self._data.batch(step_number))
            if result is not None:
                where, windows = result
                break
        if not windows:
            for step_number in steps:
                windows = windows + self._data.windows(step_number)
        return {"first_bad_value": where, "windows": windows}

    def good(self, first_step: int, step: int, loss: float) -> None:
        """Reports a loss spike.

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


def first_bad_value(
    model: XLNetPretrainer, batch: dict[str, tf.Tensor]
) -> tuple[str, list[int]] | None:
    """Finds the first non-finite value in the weights, the forward or the backward pass.

    The windows of the step are run through the model again, a few rows at a time, without dropout
    and without memory, so the problem may not reproduce.

    Args:
      model: the model, with the weights before the step.
      batch: the batch of the step, as `pretraining_dataset` yields it.

    Returns:
      The variable, layer output or gradient, by name, and the ids of the affected windows, which
      are empty if the value does not depend on them; None if all values are finite.
    """
    for variable in model.trainable_variables:
        if not _is_finite(variable):
            return f"the weights {getattr(variable, 'path', variable.name)}", []
    layers = [model.encoder.word_embedding, *model.encoder.blocks, model.lm_head]
    for first in range(0, batch["window_id"].shape[0], _ROWS):
        rows = {name: value[first : first + _ROWS] for name, value in batch.items()}
        windows = rows["window_id"].numpy()
        with tf.GradientTape() as tape:
            loss_B = row_losses(model, rows)
        inputs = model.objective(rows).inputs
        inputs = {name: x for name, x in inputs.items() if name != "content_positions"}
        hidden_states = model.encoder(inputs, return_hidden_states=True)["hidden_states"]
        for layer, values in zip(layers, [*hidden_states, loss_B], strict=True):
            is_finite = tf.math.is_finite(values).numpy().reshape(len(windows), -1)
            if not is_finite.all():
                return f"the output of {layer.name}", windows[~is_finite.all(axis=1)].tolist()
        gradients = tape.gradient(loss_B, model.trainable_variables)
        for gradient, variable in zip(gradients, model.trainable_variables, strict=True):
            if gradient is not None and not _is_finite(tf.convert_to_tensor(gradient)):
                path = getattr(variable, "path", variable.name)
                return f"the gradient of {path}", windows.tolist()
    return None


def row_losses(model: XLNetPretrainer, batch: dict[str, tf.Tensor]) -> tf.Tensor:
    """Returns the loss of each row, float32 [B], in nats per target, without dropout or memory.

    Args:
      model: the model.
      batch: a batch, as `pretraining_dataset` yields it.
    """
    task = model.objective(batch)
    logits_BPV = model(task.inputs, training=False)["logits"]
    loss_BP = tf.nn.sparse_softmax_cross_entropy_with_logits(task.labels_BP, logits_BPV)
    count_B = tf.reduce_sum(task.mask_BP, axis=1)
    return tf.math.divide_no_nan(tf.reduce_sum(loss_BP * task.mask_BP, axis=1), count_B)


def _is_finite(x: tf.Tensor) -> bool:
    return bool(tf.reduce_all(tf.math.is_finite(x)))
