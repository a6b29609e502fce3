"""Gradient overflow under dynamic loss scaling: detects the steps that it skips."""

from __future__ import annotations

from official.xlnet.modeling.models.trainable_model import TrainableModel


class OverflowDetector:
    """Detects training steps that were skipped because scaled gradients overflowed.

    A `LossScaleOptimizer` halves its scale after such a step, and only then. At a scale of 1, the
    lowest, non-finite gradients are not due to scaling: no overflow is reported.

    Args:
      model: the compiled model.

    Attributes:
      loss_scale: the scale after the latest step; None without loss scaling.
    """

    def __init__(self, model: TrainableModel):
        self._model = model
        self.loss_scale = self._read()

    def overflowed(self) -> bool:
        """Returns whether a step has overflowed since the last call."""
        before, after = self.loss_scale, self._read()
        self.loss_scale = after
        return before is not None and after is not None and after < before

    def _read(self) -> float | None:
        return float(self._model.optimizer.loss_scale) if self._model.has_loss_scale else None
