"""Unigram baseline: the loss of a model that knows token frequencies only."""

from __future__ import annotations

import collections
from collections.abc import Iterable

import numpy as np
import tensorflow as tf

from official.xlnet.data.pretraining_dataset import Records, reading_errors

_MOST_WINDOWS = 200_000  # Enough to estimate unigram frequencies of any corpus.
_RECENT_STEPS = 100  # The loss of a run is the mean over these steps.
_FIRST_STEPS = 1000  # A run has left the baseline by then, or after twice its warm-up.
_MARGIN = 0.05  # Nats per target; the baseline is an estimate.


def unigram_distribution(
    data: Records, vocab_size: int, num_windows: int = _MOST_WINDOWS
) -> np.ndarray:
    """Unigram distribution of the training split; see `distribution_of`.

    Args:
      data: the data set.
      vocab_size: V.
      num_windows: number of windows to count, the first ones of every lane.

    Returns:
      Probabilities, float64 [V].

    Raises:
      DataError: the data set cannot be read.
    """
    with reading_errors(data.path, "train"):
        return distribution_of(data.first_windows(num_windows), vocab_size)


def distribution_of(batches: Iterable[dict[str, tf.Tensor]], vocab_size: int) -> np.ndarray:
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
    """Tells whether a pre-training run has learned more than token frequencies.

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
