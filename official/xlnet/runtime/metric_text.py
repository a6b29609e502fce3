"""Metrics as text, for a line of a log or the cell of a table."""

from __future__ import annotations


def metric_text(value: float | None, over: str | None = None) -> str:
    """Returns the text of a metric, with the classes that it is the mean over.

    Args:
      value: the metric; None if it is undefined.
      over: the classes; None for all.

    Example:
      >>> metric_text(0.5), metric_text(None), metric_text(0.5, "8 of 10 classes")
      ('0.5000', 'undefined', '0.5000 over 8 of 10 classes')
    """
    text = "undefined" if value is None else f"{value:.4f}"
    return f"{text} over {over}" if over else text
