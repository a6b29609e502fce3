"""Attention masks of a factorization order as arrays: who may attend to whom, in both streams."""

from __future__ import annotations

import dataclasses

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from official.xlnet.configs.registry import PUBLIC_NAMES
from official.xlnet.configs.validation import require
from official.xlnet.runtime.display import DisplayMixin
from official.xlnet.runtime.pictures import new_figure


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Masks(DisplayMixin):
    """Attention masks of a window.

    Attributes:
      content: bool [T, T]; `content[i, j]` is whether the content row of token i may attend to
        token j: order[j] <= order[i].
      query: bool [P, T], the same for the query row of each target: order[j] < order[i].
    """

    content: np.ndarray
    query: np.ndarray

    def plot(self) -> Figure:
        """Draws both masks, as figure 4 of the paper: a row for each token that attends."""
        figure = new_figure(8, 4)
        for axes, name in zip(figure.subplots(1, 2), ("content", "query"), strict=True):
            axes.imshow(getattr(self, name), cmap="Blues", vmin=0, vmax=1.4)
            axes.set(title=f"{name} stream", xlabel="token j", ylabel="attends to j: row i")
        figure.tight_layout()
        return figure


@PUBLIC_NAMES.register("make_masks")
def make_masks(order: ArrayLike, target_positions: ArrayLike | None = None) -> Masks:
    """Returns the attention masks of a window with a factorization order.

    Args:
      order: integers [T], the position of each token in the factorization order; tokens with the
        same one see each other.
      target_positions: integers [P], the tokens that have a query row. Default: all.

    Raises:
      ConfigError: an argument is not a list of integers, or a target is not in the window.

    Example:
      >>> make_masks([0, 2, 1]).query.astype(int)
      array([[0, 0, 0],
             [1, 0, 1],
             [1, 0, 0]])
    """
    order_T = np.asarray(order)
    target_P = np.arange(order_T.size) if target_positions is None else np.asarray(target_positions)
    for name, array in (("order", order_T), ("target_positions", target_P)):
        is_list = array.ndim == 1 and array.dtype.kind in "iu"
        require(is_list, name, "a list of integers", f"{array.dtype} {list(array.shape)}")
    inside = set(target_P.tolist()) <= {*range(order_T.size)}
    require(inside, "target_positions", f"from 0 to {order_T.size - 1}", target_P.tolist())
    key_T, row_T1 = order_T[np.newaxis], order_T[:, np.newaxis]
    return Masks(key_T <= row_T1, (key_T < row_T1)[target_P])
