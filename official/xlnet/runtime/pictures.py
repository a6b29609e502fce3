"""Pictures as PNG, drawn without a display."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_PIECES, _ROW_PIECES, _ROW_INCHES = 256, 32, 2.0


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of a size in inches."""
    from matplotlib.figure import Figure  # Imported only where pictures are drawn.

    return Figure(figsize=(width, height))


def bars_of_pieces(
    pieces: list[str], values: np.ndarray, ylabel: str, top: float | None = None
) -> Figure:
    """Draws a bar for each word piece of a text, in rows of text.

    Args:
      pieces: the pieces; the first 256 of them are drawn.
      values: the height of each bar, [T].
      ylabel: label of the height.
      top: the end of the axis. Default: the highest bar.
    """
    values = np.asarray(values)[:_MOST_PIECES]
    names = [piece.replace("▁", " ") for piece in pieces[:_MOST_PIECES]]
    starts = range(0, max(1, len(names)), _ROW_PIECES)
    figure = new_figure(10, _ROW_INCHES * len(starts))
    top = max(values, default=1.0) if top is None else top
    for axes, start in zip(figure.subplots(len(starts), squeeze=False)[:, 0], starts, strict=True):
        row = slice(start, start + _ROW_PIECES)
        axes.bar(range(len(names[row])), values[row], color="#29619f")
        axes.set_xticks(
            range(len(names[row])), names[row], rotation=60, ha="right", parse_math=False
        )
        axes.set(xlim=(-0.6, _ROW_PIECES - 0.4), ylim=(0, top), ylabel=ylabel)
    figure.tight_layout()
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
