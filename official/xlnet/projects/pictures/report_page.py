"""Parts that reports of all runs have: the page, curves, settings and commands.

A page shows the files of the run's directory, and nothing on it is loaded from elsewhere.
"""

from __future__ import annotations

import html
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.projects.pictures.html_page import Line, chart, html_page, smoothed
from official.xlnet.projects.pictures.scalars import read_scalars
from official.xlnet.runtime.history import read_history
from official.xlnet.runtime.metric_text import metric_text

HELD_OUT_LOSS = "heldout_loss"  # Name of the scalar in the logs.
_LARGE = 100  # From here on, numbers are shown without decimals.
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
_STYLE = """\
.wide, pre { overflow-x: auto; } td { vertical-align: top; overflow-wrap: anywhere; }
th { white-space: nowrap; } td, th { border-bottom: 1px solid #ddd; } pre { font-size: .85rem; }
.wide td { min-width: 6rem; } .texts td:nth-child(2) { min-width: 14rem; }
figure { margin: 1rem 0; max-width: 40rem; }
img { max-width: 100%; } svg { display: block; overflow: visible; width: 100%; font-size: 13px; }
polyline { fill: none; stroke: currentColor; } .grid { stroke: #ddd; } .x { text-anchor: middle; }
.y { text-anchor: end; } .raw { color: #a9c3dc; } .smooth { color: #29619f; stroke-width: 2; }
@media (max-width: 30rem) { table { font-size: .8rem; } th { white-space: normal; }
  pre { white-space: pre-wrap; overflow-wrap: anywhere; }
  td, th { padding-right: .4rem; overflow-wrap: anywhere; }
  .wide td, .texts td:nth-child(2) { min-width: 0; } .texts .wide td:first-child { min-width: 2em; }
  .texts th { overflow-wrap: normal; } }
.dots { color: #b3261e; } circle { fill: #b3261e; } .level { color: #777; stroke-dasharray: 5 4; }
"""


def report_page(title: str, sections: Mapping[str, str]) -> str:
    """Returns the page of a report.

    Args:
      title: its title, as text.
      sections: {heading: HTML}, in their order; sections without HTML are left out.
    """
    body = ""
    for heading, content in sections.items():
        if content:
            body += f"<h2>{heading}</h2>\n{content}\n"
    return html_page(title, _STYLE, body, _POLICY)


def value_text(value: Any) -> str:
    """Returns a value of a report as text: large numbers without decimals, others with four."""
    if isinstance(value, str):
        return value
    if isinstance(value, int) or (value is not None and value >= _LARGE):
        return f"{value:,.0f}"
    return metric_text(value)


def training_curves(
    directory: str, scalar: str, name: str, unigram_loss: float | None = None
) -> str:
    """Returns charts of the training loss and of the evaluations of a run.

    Args:
      directory: the model directory.
      scalar: name of the scalar in the logs that holds the evaluations.
      name: its name in the legend.
      unigram_loss: loss of a unigram baseline, drawn as a level; None for none.

    Returns:
      The HTML; empty without a history of the run.
    """
    points = [(line["step"], line["loss"]) for line in read_history(directory)]
    if not points:
        return ""
    lines = [Line("each step", "raw", points), Line("smoothed", "smooth", smoothed(points))]
    evaluations = Line(name, "dots", sorted(read_scalars(directory, scalar).items()))
    if scalar == HELD_OUT_LOSS:  # On the scale of the training losses.
        if unigram_loss:
            first_step, last_step = points[0][0], points[-1][0]
            level = [(first_step, unigram_loss), (last_step, unigram_loss)]
            lines.append(Line("unigrams", "level", level))
        return chart([*lines, evaluations], "step", "loss")
    charts = chart(lines, "step", "training loss")
    if len(evaluations.points) > 1:
        charts += chart([evaluations], "step", "dev")
    return charts


def command_lines(*commands: Sequence[str]) -> str:
    """Returns commands of `xlnet`, one a line, quoted for a shell.

    Args:
      *commands: the arguments of each command.
    """
    return preformatted("\n".join(f"xlnet {shlex.join(command)}" for command in commands))


def all_settings(config: XLNetConfig) -> str:
    """Returns the whole configuration, folded away."""
    text = preformatted(repr(config))
    return f"<details><summary>all settings</summary>{text}</details>"


def preformatted(text: str) -> str:
    """Returns text whose lines stay as they are."""
    return f"<pre>{html.escape(text)}</pre>"
