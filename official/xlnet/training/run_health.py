"""Health of a pre-training run: its plan, whether it learns, and where it diverges.

Before it starts, a line says what the run will do, and warnings name what is unlikely to be right:
many passes over the data, a learning rate far from the usual, few prediction targets. During the
run, the loss is compared with the unigram baseline, spikes are reported with their windows, and a
step with non-finite values with the first layer that has one.
"""

from __future__ import annotations

import collections
import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import tensorflow as tf
from absl import logging

from official.xlnet.configs.choices import PREDICTS_ALL
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.sections import ObjectiveSections
from official.xlnet.data.pretraining_dataset import Records
from official.xlnet.data.schema import Manifest, SplitManifest
from official.xlnet.errors import DivergedError
from official.xlnet.modeling.objectives import create_objective

if TYPE_CHECKING:  # `prepare` counts targets without a model.
    from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
    from official.xlnet.runtime.metrics_log import RunLog
    from official.xlnet.training.run_data import RunData

_MOST_PASSES = 100  # Passes over the data, after which a model mostly memorizes.
_FAR = 10.0  # Ratio of a learning rate to `usual_learning_rate` that is reported.

_NUM_WINDOWS = 256  # Windows that are read, however many lanes there are.
_NUM_ROWS = 64  # Windows that are counted at once.
_ENOUGH = 0.95  # Share of the requested targets; words rarely fill the budget to the last token.

_RECENT_STEPS = 100  # The loss of a run is the mean over these steps.
_FIRST_STEPS = 1000  # A run has left the baseline by then, or after twice its warm-up.
_MARGIN = 0.05  # Nats per target; the baseline is an estimate.

_MOST_BAD_STEPS = 10  # Consecutive non-finite steps after which a run stops even when skipping.
_SPIKE_DEVIATIONS = 6.0
_SETTLED_STEPS = 100  # Spike detection is off for the first steps and after each spike.
_SMOOTHING = 0.02  # Weight of the newest loss in the running mean and variance.
_ROWS = 8  # Rows per forward pass.
_NOT_FOUND = "not reproduced without dropout and memory"


def usual_learning_rate(num_weights: int) -> float:
    """Learning rate of a language model of a size; a rule of thumb.

        0.003239 − 0.0001395 · ln(N)

    Kaplan et al. (2020), "Scaling Laws for Neural Language Models", equation D.1, for Adam.

    Args:
      num_weights: number of parameters without the embedding, N.

    Example:
      >>> round(usual_learning_rate(85_000_000), 5)
      0.00069
    """
    return max(0.003239 - 0.0001395 * math.log(num_weights), 1e-5)


def plan(config: XLNetConfig, data: SplitManifest, steps: int) -> str:
    """Describes a run in one line: parameters, steps, tokens, passes over the data.

    Args:
      config: the experiment configuration.
      data: manifest entry of the training split.
      steps: number of steps from the start of the run.

    Example:
      >>> plan(config, Manifest.load("records").splits["train"], 1300)
      '0.9 M parameters, 1,300 steps of 16 x 128 tokens (2.7 M tokens), 1.6 passes over 13,312
      windows'
    """
    seq_len, batch_size = config.data.seq_len, config.training.batch_size
    return (
        f"{config.model.num_parameters / 1e6:,.1f} M parameters, "
        f"{steps:,} steps of {batch_size} x {seq_len} tokens "
        f"({steps * batch_size * seq_len / 1e6:,.1f} M tokens), "
        f"{_passes(config, data, steps):,.1f} passes over {data.windows:,} windows"
    )


def warnings(
    config: XLNetConfig, data: SplitManifest, steps: int, is_continued: bool = False
) -> list[str]:
    """Lists what is unlikely to be right in a recipe, a sentence each.

    Args:
      config: the experiment configuration.
      data: manifest entry of the training split.
      steps: number of steps from the start of the run.
      is_continued: whether the weights come from another model, which a low learning rate suits.
    """
    sentences = []
    passes = _passes(config, data, steps)
    if passes > _MOST_PASSES:
        fewer = _MOST_PASSES * data.windows // config.training.batch_size
        sentences.append(
            f"training.num_steps: each window is read {passes:,.0f} times, expected at most "
            f"{_MOST_PASSES}; prepare more text, or train for {fewer:,} steps"
        )
    rate = config.training.learning_rate
    model = config.model
    usual = usual_learning_rate(model.num_parameters - model.num_embeddings * model.d_model)
    is_low = rate < usual / _FAR and not is_continued
    if config.training.optimizer == "adamw" and (is_low or rate > usual * _FAR):
        sentences.append(
            f"training.learning_rate: {rate:g} is far from {usual:.1g}, the usual one for a model "
            "of this size"
        )
    return sentences


def _passes(config: XLNetConfig, data: SplitManifest, steps: int) -> float:
    return steps * config.training.batch_size / data.windows


class TargetCount(NamedTuple):
    """Number of targets of some windows.

    Attributes:
      mean: mean number of targets of a window.
      without: share of the windows that have no target.
      wanted: number of targets asked for.
    """

    mean: float
    without: float
    wanted: int


def targets_per_window(config: XLNetConfig, data_dir: str) -> dict[str, float]:
    """Counts the targets in the first windows of a data set; warns if they are few.

    Args:
      config: the experiment configuration; `model.vocab_size` is set to match the data set.
      data_dir: data set directory.

    Returns:
      `targets_per_window`, the mean number of targets, and `windows_without_targets`, the share of
      windows that have none.

    Raises:
      DataError: the data set cannot be read, or does not match the configuration.
    """
    config.model.fit_vocabulary(Manifest.load(data_dir).vocab_size, data_dir)
    data = Records(data_dir, config).first_windows(_NUM_WINDOWS).rebatch(_NUM_ROWS)
    sections = ObjectiveSections.of(config)
    count = count_targets(data, sections)
    warn_of_few_targets(count, sections)
    return {
        "targets_per_window": round(count.mean, 2),
        "windows_without_targets": round(count.without, 4),
    }


def count_targets(
    batches: Iterable[dict[str, tf.Tensor]], sections: ObjectiveSections
) -> TargetCount:
    """Counts the targets in the windows of batches.

    Args:
      batches: batches, as `pretraining_dataset` yields them.
      sections: sections of the experiment.
    """
    masks = [create_objective(sections)(batch).mask_BP for batch in batches]
    count_B = np.concatenate([tf.reduce_sum(mask_BP, axis=1) for mask_BP in masks])
    return TargetCount(float(count_B.mean()), float(np.mean(count_B == 0)), masks[0].shape[1])


def warn_of_few_targets(count: TargetCount, sections: ObjectiveSections) -> None:
    """Logs a warning that says what to do, if there are fewer targets than asked for.

    Args:
      count: the number of targets of some windows.
      sections: sections of the experiment.
    """
    if sections.objective.kind in PREDICTS_ALL or count.mean >= _ENOUGH * count.wanted:
        return
    if 1 <= int(count.mean) < count.wanted:
        advice = f"data.num_predict={int(count.mean)}, which costs less"
    else:
        advice = "a larger data.num_predict"
    if sections.data.target_unit == "word":
        advice = f"data.target_unit=token, as words of this text are long, or {advice}"
    share = f" ({count.without:.0%} of the windows have none)" if count.without else ""
    logging.warning(
        "targets: %.1f tokens of a window are predicted%s, but data.num_predict asks for %d: "
        "set %s",
        count.mean,
        share,
        count.wanted,
        advice,
    )


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
        self._recent.append(loss)
        recent = float(np.mean(self._recent))
        is_due = before < self._due <= step and self._due >= _RECENT_STEPS
        return recent if is_due and recent > self.loss - _MARGIN else None


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
        findings = (first_bad_value(self._model, self._data.batch(number)) for number in steps)
        where, windows = next(filter(None, findings), (_NOT_FOUND, []))
        windows = windows or [window for number in steps for window in self._data.windows(number)]
        values = {"loss": repr(loss), "gradient_norm": repr(gradient_norm)}
        self._log.event("bad step", step=step, first_bad_value=where, windows=windows, **values)
        if not self._skip or self._num_bad >= _MOST_BAD_STEPS:
            ids = ", ".join(map(str, windows[:8])) + (", …" if len(windows) > 8 else "")
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
