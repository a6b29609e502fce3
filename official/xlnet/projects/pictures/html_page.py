"""Self-contained HTML pages: the frame of all pages, tables and line charts."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

_WIDTH, _HEIGHT = 480, 260  # Size of a chart.
_LEFT, _RIGHT, _TOP = 52, 16, 12  # Its margins.
_FLOOR = _HEIGHT - 40  # Where the horizontal axis is.
_MOST_POINTS = 800  # Drawn of a line.
_SHOWN_PERCENT = (1, 99)  # Percentiles of noisy values that the axis shows.
_STYLE = """\
body { font: 16px/1.7 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem;
  color: #1c1c1c; background: #fff; }
h1 { font-size: 1.25rem; overflow-wrap: anywhere; } h2 { font-size: 1.1rem; margin-top: 2rem; }
table { border-collapse: collapse; } td, th { padding: 0 .8rem 0 0; text-align: left; }
"""


class Line(NamedTuple):
    """A line of a chart.

    Attributes:
      name: its name in the legend.
      style: how it is drawn: `raw` (thin), `smooth`, `level` (dashed) or `dots`.
      points: pairs (x, y); x is not negative.
    """

    name: str
    style: str
    points: Sequence[tuple[float, float]]


def html_page(title: str, style: str, body: str, policy: str = "") -> str:
    """Returns a page.

    Args:
      title: its title and heading, as text.
      style: CSS in addition to the style of all pages.
      body: the HTML below the heading.
      policy: its Content-Security-Policy; empty for none.
    """
    title = html.escape(title)
    policy = policy and f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
    return f"""\
<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
{policy}<meta name="viewport" content="width=device-width, initial-scale=1"><title>{title}</title>
<style>
{_STYLE}{style}</style></head><body>
<h1>{title}</h1>
{body}
</body></html>
"""


def html_table(head: Sequence[Any], rows: Iterable[Sequence[Any]]) -> str:
    """Returns a table, which scrolls where it is wider than the page; cells are text.

    Args:
      head: its first row.
      rows: the other rows.
    """
    lines = [_table_row("th", head)]
    lines += [_table_row("td", row) for row in rows]
    return f"<div class='wide'><table>{''.join(lines)}</table></div>"


def _table_row(tag: str, cells: Sequence[Any]) -> str:
    texts = [f"<{tag} dir='auto'>{html.escape(str(cell))}</{tag}>" for cell in cells]
    return f"<tr>{''.join(texts)}</tr>"


def smoothed(points: Sequence[tuple[float, float]], parts: int = 50) -> list[tuple[float, float]]:
    """Returns the means of y over a 50th of the points, each at the last x of its points.

    The line begins where the first whole mean is known.

    Example:
      >>> smoothed([(1, 4.0), (2, 2.0), (3, 3.0), (4, 1.0)], parts=2)
      [(2, 3.0), (3, 2.5), (4, 2.0)]
    """
    width = max(1, len(points) // parts)
    sums = np.cumsum([0.0, *(y for _, y in points)])
    means = (sums[width:] - sums[:-width]) / width
    return [(x, y) for (x, _), y in zip(points[width - 1 :], means.tolist(), strict=True)]


def chart(lines: Sequence[Line], xlabel: str, ylabel: str) -> str:
    """Draws lines as inline SVG, with a legend.

    Args:
      lines: the lines; those without points are left out.
      xlabel: label of the horizontal axis, as text.
      ylabel: label of the vertical axis, as text.
    """
    lines = [line for line in lines if len(line.points)]
    axes = _Axes(*_ranges(lines))
    elements = axes.draw()
    for line in lines:
        every = math.ceil(len(line.points) / _MOST_POINTS)
        places = axes.place(line.points[::every])
        if line.style == "dots":
            elements += [f"<circle cx='{x:.1f}' cy='{y:.1f}' r='4'/>" for x, y in places]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        elements.append(f"<polyline points='{path}' class='{line.style}'/>")
    xlabel, ylabel = html.escape(xlabel), html.escape(ylabel)
    elements.append(f"<text x='{_WIDTH / 2}' y='{_HEIGHT - 6}' class='x'>{xlabel}</text>")
    legend = [f"<b class='{line.style}'>●</b> {html.escape(line.name)}" for line in lines]
    return (
        f"<figure><figcaption>{ylabel}: {', '.join(legend)}</figcaption><svg "
        f"viewBox='0 0 {_WIDTH} {_HEIGHT}' role='img' aria-label='{ylabel}'>"
        f"{''.join(elements)}</svg></figure>"
    )


class _Axes:
    """Axes of a chart, from a round number below the values to one above.

    Args:
      x_ticks: numbers along the horizontal axis, in ascending order.
      y_ticks: numbers along the vertical axis, in ascending order.
    """

    def __init__(self, x_ticks: Sequence[float], y_ticks: Sequence[float]):
        self.x_ticks, self.y_ticks = x_ticks, y_ticks

    def place(self, points: Any) -> np.ndarray:
        """Returns where points are in the drawing; those beyond the axes are at the edge.

        Args:
          points: pairs (x, y), [..., 2].
        """
        low = np.array([self.x_ticks[0], self.y_ticks[0]])
        high = np.array([self.x_ticks[-1], self.y_ticks[-1]])
        share = np.clip((np.array(points, float) - low) / (high - low), 0, 1)
        corner = np.array([_LEFT, _FLOOR])
        return corner + share * [_WIDTH - _LEFT - _RIGHT, _TOP - _FLOOR]

    def draw(self) -> list[str]:
        """Returns the numbers along the axes, and a horizontal line at each vertical number."""
        elements = []
        for x in self.x_ticks:
            left, _ = self.place([x, self.y_ticks[0]])
            elements.append(f"<text x='{left:.1f}' y='{_FLOOR + 16}' class='x'>{x:,.10g}</text>")
        for y in self.y_ticks:
            _, top = self.place([self.x_ticks[0], y])
            elements.append(f"<path d='M{_LEFT} {top:.1f}H{_WIDTH - _RIGHT}' class='grid'/>")
            elements.append(f"<text x='{_LEFT - 6}' y='{top + 4:.1f}' class='y'>{y:,.10g}</text>")
        return elements


def _ranges(lines: Sequence[Line]) -> tuple[list[float], list[float]]:
    """The ticks of both axes."""
    last_x = 0.0
    ends = []
    for line in lines:
        values = np.array(line.points, float)
        last_x = max(last_x, values[:, 0].max())
        percent = _SHOWN_PERCENT if line.style == "raw" else (0, 100)
        ends += np.percentile(values[:, 1], percent).tolist()
    return _ticks(0.0, last_x), _ticks(min(ends), max(ends))


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers from below `low` to above `high`, up to seven.

    Example:
      >>> _ticks(0.7, 3.9)
      [0, 1, 2, 3, 4]
    """
    span = high - low or abs(high) or 1.0
    unit = 10.0 ** math.floor(math.log10(span / 5))
    step = next(unit * factor for factor in (1, 2, 5, 10) if span / (unit * factor) <= 5)
    first = math.floor(low / step)
    last = max(math.ceil(high / step), first + 1)
    return [float(f"{n * step:.10g}") for n in range(first, last + 1)]
