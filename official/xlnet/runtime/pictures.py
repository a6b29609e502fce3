"""Pictures as PNG, drawn without a display."""

from __future__ import annotations

import io
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of a size in inches."""
    figure = Figure(figsize=(width, height))
    FigureCanvasAgg(figure)
    return figure


def png(figure: Figure, **options: Any) -> bytes:
    """The figure as PNG.

    Args:
      figure: the figure.
      **options: see `Figure.savefig`.
    """
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=120, **options)
    return file.getvalue()
