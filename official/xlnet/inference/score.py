"""The log-likelihood of a text, token by token."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from official.xlnet.configs.registry import ORDER_ESTIMATES
from official.xlnet.inference.text_parts import Span
from official.xlnet.runtime.display import DisplayMixin
from official.xlnet.runtime.pictures import bars_of_pieces

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Score(DisplayMixin):
    """Log-likelihood of one text, or of its targets.

    Attributes:
      text: the text.
      pieces: its word pieces, or the word pieces of its targets.
      log_likelihoods: float64, one for each piece, in nats; means over the orders if random.
      offsets: start and end of each piece in characters of the text.
      order_totals: float64, the log-likelihood under each of the random orders; else empty.
      entropies: float64, the entropy of the distribution that each piece is predicted from, in
        nats, which is its expected surprisal; means over the orders if random; empty unless
        computed.
    """

    text: str
    pieces: list[str]
    log_likelihoods: np.ndarray
    offsets: list[Span] = dataclasses.field(default_factory=list)
    order_totals: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(0))
    entropies: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(0))

    @property
    def total(self) -> float:
        """Log-likelihood of the text, or of its targets, in nats; also `log_likelihood`."""
        return math.fsum(self.log_likelihoods)

    log_likelihood = total  # As in the log-likelihoods of an export.

    def __repr__(self) -> str:
        pieces = f"{len(self.pieces)} piece{'s' * (len(self.pieces) != 1)}"
        return f"Score({self.text!r:.60}, {pieces}, log-likelihood {self.total:.2f} nats)"

    def plot(self) -> Figure:
        """Draws the surprisal of each piece, -log p in nats, as a bar."""
        return bars_of_pieces(self.pieces, -self.log_likelihoods, "surprisal, nats")

    @property
    def standard_error(self) -> float | None:
        """Standard error of `total` over random orders; None for fewer than two."""
        return standard_error(self.order_totals)

    def mixture(self) -> Any:
        """Estimate of the mixture over all orders; None for fewer than two random orders."""
        return ORDER_ESTIMATES["mixture"](self.order_totals)


def standard_error(totals: np.ndarray) -> float | None:
    """Standard error of the mean of some numbers; None for fewer than two."""
    if len(totals) < 2:
        return None
    return float(np.std(totals, ddof=1) / math.sqrt(len(totals)))
