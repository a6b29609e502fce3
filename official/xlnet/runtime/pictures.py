"""Pictures as PNG, drawn without a display, and results that a notebook shows as one."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LONGEST = 60  # Characters of a text that are shown.
_MOST_PIECES, _ROW_PIECES, _ROW_INCHES = 256, 32, 2.0


class DisplayMixin:
    """Base class of dataclasses that are one line in Python and a picture in a notebook.

    The line has sizes in place of arrays and lists. A subclass, a dataclass with `eq=False`, draws
    the picture in `plot`. Two of them are equal if their arrays are.
    """

    def plot(self) -> Figure:
        """Draws the picture."""
        raise NotImplementedError

    def __repr__(self) -> str:
        fields = [f"{name}={_size(value)}" for name, value in vars(self).items()]
        return f"{type(self).__name__}({', '.join(fields)})"

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        for name, value in vars(self).items():
            other_value = getattr(other, name)
            if isinstance(value, np.ndarray):
                if not np.array_equal(value, other_value):
                    return False
            elif value != other_value:
                return False
        return True

    def _repr_png_(self) -> bytes:
        return png(self.plot())


def _size(value: Any) -> str:
    """A value in a few words."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {list(value.shape)}"
    return f"[{len(value)}]" if isinstance(value, list) else f"{value!r:.{_LONGEST}}"


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
