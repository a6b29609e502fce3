"""Results that a notebook shows as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from official.xlnet.runtime.pictures import png

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LONGEST = 60  # Characters of a text that are shown.


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
