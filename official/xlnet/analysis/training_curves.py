"""Plots of the training curves of one or more runs."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from official.xlnet.errors import require_data
from official.xlnet.runtime.history import HISTORY_FILE, read_history
from official.xlnet.runtime.pictures import new_figure, png

_SMOOTHING = 50  # The moving average spans 1 / _SMOOTHING of a run.
_MAX_COLORS = 10  # Colors of Matplotlib's default cycle.


def training_curves(model_dirs: Sequence[str]) -> bytes:
    """Plots the training loss of runs, per step and as a moving average.

    Args:
      model_dirs: model directories of `xlnet pretrain` or `xlnet finetune`.

    Returns:
      The image as PNG.

    Raises:
      DataError: a directory has no training history.
    """
    figure = new_figure(8, 5)
    axes = figure.subplots()
    names = _short_names(model_dirs)
    for number, (directory, name) in enumerate(zip(model_dirs, names, strict=True)):
        history = read_history(directory)
        require_data(bool(history), directory, f"the {HISTORY_FILE} of a training run", "none")
        steps = np.array([line["step"] for line in history])
        losses = np.array([line["loss"] for line in history])
        width = max(1, len(losses) // _SMOOTHING)
        smooth = np.convolve(losses, np.ones(width) / width, mode="valid")
        color = f"C{number % _MAX_COLORS}"
        axes.plot(steps, losses, color=color, alpha=0.15, linewidth=0.6)
        axes.plot(steps[width - 1 :], smooth, color=color, label=name)
    axes.set(xlabel="step", ylabel="training loss, nats per target")
    axes.legend()
    return png(figure, bbox_inches="tight")


def _short_names(paths: Sequence[str]) -> list[str]:
    """Paths relative to their common parent directory."""
    full = [os.path.abspath(path) for path in paths]
    if len(full) == 1:
        return [os.path.basename(full[0])]
    return [os.path.relpath(path, os.path.commonpath(full)) for path in full]
