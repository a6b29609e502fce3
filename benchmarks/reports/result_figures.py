"""Pictures of measured results, each from the rows of a table or of a JSON file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from benchmarks.accelerators.chips import CHIPS
from official.xlnet.runtime.pictures import new_figure, png

_OURS, _THEIRS, _THIRD = "#29619f", "#e0912f", "#5f9e6e"
_TITLE = {"ours": "ours", "hf": "HF", "tfm": "tf-models-official"}
_COLOR = {"ours": _OURS, "hf": _THEIRS, "tfm": _THIRD}
Table = list[list[str]]  # Cells by row; the first row is the head.


def train_step(ratios: dict[str, dict[str, float]]) -> bytes:
    """Time of a training step relative to ours: {shape: {implementation: ratio}}."""
    figure = new_figure(7.5, 0.9 + 0.34 * sum(len(times) + 2 for times in ratios.values()))
    heights = [len(times) for times in ratios.values()]
    panels = figure.subplots(len(ratios), gridspec_kw={"height_ratios": heights}, squeeze=False)
    for axes, (shape, times) in zip(panels[:, 0], ratios.items(), strict=True):
        names = sorted(times, key=times.__getitem__)
        colors = [_OURS if name.startswith("ours") else _THEIRS for name in names]
        _bars(axes, names, [times[name] for name in names], colors, "{:.2f}")
        axes.set(title=shape)
    panels[-1, 0].set_xlabel("time of a training step, ours = 1")
    figure.tight_layout()
    return png(figure)


def growth(lines: dict[str, dict[str, dict[str, float]]]) -> bytes:
    """Time per token: {label of the axis: {implementation: {length: microseconds}}}."""
    figure = new_figure(9, 4)
    for axes, (label, times) in zip(figure.subplots(1, len(lines)), lines.items(), strict=True):
        for name, line in times.items():
            style = "k--" if "formula" in name else "o-"
            axes.plot(list(map(int, line)), list(line.values()), style, label=name)
        axes.set(xlabel=label, ylabel="µs per token", ylim=(0, None))
        axes.legend()
        _open(axes)
    figure.tight_layout()
    return png(figure)


def time_to_quality(groups: dict[str, Any]) -> bytes:
    """Held-out loss over wall time, a panel a text, a thin line a run.

    Args:
      groups: {text: {"unigram_loss": …, "runs": [{"peer": …, "curve": …}, …]}}.
    """
    figure = new_figure(9, 4)
    panels = figure.subplots(1, len(groups), squeeze=False, sharey=True)[0]
    for axes, (text, found) in zip(panels, groups.items(), strict=True):
        named = set()
        for run in found["runs"]:
            peer = run["peer"]
            seconds, _, losses = np.transpose(run["curve"])
            label = None if peer in named else _TITLE[peer]
            axes.plot(seconds, losses, ".-", color=_COLOR[peer], alpha=0.7, label=label)
            named.add(peer)
        axes.axhline(found["unigram_loss"], color="gray", linestyle="--", label="unigrams")
        axes.set(title=text, xlabel="seconds from the start of the process", xlim=(0, None))
        axes.legend()
        _open(axes)
    panels[0].set_ylabel("held-out loss, nats per target")
    figure.tight_layout()
    return png(figure)


def ablation(table: Table) -> bytes:
    """Mean span losses of the rows, with standard deviations over seeds."""
    titles = [row[0] for row in table[1:]]
    cells = [row[2].partition(" ± ") for row in table[1:]]
    means, spreads = [float(mean) for mean, _, _ in cells], [float(x or 0) for _, _, x in cells]
    colors = [_THEIRS if title.startswith(("BERT", "DAE")) else _OURS for title in titles]
    figure = new_figure(8, 0.9 + 0.36 * len(titles))
    axes = figure.subplots()
    _bars(axes, titles, means, colors, "{:.2f}", xerr=spreads, capsize=3)
    low, high = min(means), max(means)
    axes.set_xlim(max(0.0, 2 * low - high), high + 0.3 * (high - low) + 0.01)
    axes.set_xlabel("-log p of a held-out span, nats (the axis does not start at 0)")
    return png(figure, bbox_inches="tight")


def attention_length(table: Table) -> bytes:
    """Perplexity and time by attention length, with memory and with a sliding window."""
    columns = np.array(table[1:], float).T
    figure = new_figure(9, 4)
    panels = figure.subplots(1, 2)
    for axes, title, first in zip(
        panels, ("perplexity", "milliseconds per token"), (1, 3), strict=True
    ):
        for column, label in ((first, "memory"), (first + 1, "sliding window, stride 1")):
            axes.plot(columns[0], columns[column], "o-", label=label)
        axes.set_xscale("log", base=2)
        axes.set(xlabel="attention length, tokens", title=title)
        axes.legend()
        _open(axes)
    panels[1].set_yscale("log")
    figure.tight_layout()
    return png(figure)


def generation_cost(times: dict[str, Any]) -> bytes:
    """Milliseconds of each new token with the cache, and of a forward pass by length without it."""
    figure = new_figure(7, 4)
    axes = figure.subplots()
    cached, uncached = times["cached"], times["uncached"]
    axes.plot(range(2, len(cached) + 2), cached, ".", ms=2, color=_OURS, label="with the cache")
    lengths = list(map(int, uncached))
    axes.plot(lengths, list(uncached.values()), "o-", color=_THEIRS, label="a whole forward pass")
    axes.set(xlabel="token", ylabel="milliseconds", yscale="log", title="Cost of one new token")
    axes.legend()
    _open(axes)
    return png(figure, bbox_inches="tight")


def token_steps(steps: dict[str, Any]) -> bytes:
    """Steps of each token of a sentence, as `xlnet inspect steps` draws them."""
    from official.xlnet.analysis.token_steps import TokenSteps, as_png

    return as_png(TokenSteps(steps["pieces"], np.array(steps["num_steps"]), steps["layers"]))


def serving(table: Table) -> bytes:
    """Median milliseconds of a request by length, ours and HF's."""
    figure = new_figure(7, 3.6)
    axes = figure.subplots()
    places = np.arange(len(table) - 1)
    for number, (column, name) in enumerate(((1, "ours"), (3, "HF"))):
        values = [float(row[column].removesuffix(" ms")) for row in table[1:]]
        color = _OURS if name == "ours" else _THEIRS
        bars = axes.bar(places + 0.4 * number, values, 0.38, label=name, color=color)
        axes.bar_label(bars, fmt="{:.0f}")
    axes.set_xticks(places + 0.2, [row[0] for row in table[1:]])
    axes.set(xlabel="tokens of a request", ylabel="median, milliseconds", yscale="log")
    axes.set_ylim(top=4 * axes.get_ylim()[1])
    axes.legend(frameon=False, ncols=2)
    _open(axes)
    return png(figure, bbox_inches="tight")


def accelerators(rows: list[dict[str, Any]]) -> bytes:
    """Bound on the tokens per second of a chip, by the compiler's cost analysis; pre-training."""
    best: dict[tuple[str, str], tuple[float, int]] = {}
    for row in rows:
        chip = CHIPS[row["chip"]]
        seconds = max(row["flops"] / chip.flops, row["bytes"] / chip.bandwidth)
        rate = row["tokens"] * chip.devices / seconds
        key = row["step"], row["chip"]
        best[key] = max(best.get(key, (0.0, 0)), (rate, row["batch_size"]))
    names = [f"{step}, {chip}, {size} rows" for (step, chip), (_, size) in best.items()]
    figure = new_figure(7.5, 0.9 + 0.36 * len(names))
    axes = figure.subplots()
    colors = [_OURS if step == "base" else _THIRD for step, _ in best]
    _bars(axes, names, [rate for rate, _ in best.values()], colors, "{:,.0f}")
    axes.set_xlabel("tokens per second and chip, at most")
    return png(figure, bbox_inches="tight")


def largest_batch(table: Table) -> bytes:
    """Largest batches of fine-tuning on a GPU of 16 GB, the release's and ours."""
    figure = new_figure(7.5, 3.6)
    axes = figure.subplots()
    columns = [c for c in range(1, len(table[0])) if any(row[c] != "?" for row in table[1:])]
    width = 0.8 / len(columns)
    colors = [_THEIRS, "lightgray", "gray", _THIRD, _OURS]
    for number, column in enumerate(columns):
        rows = [(place, row[column]) for place, row in enumerate(table[1:]) if row[column] != "?"]
        places = [place + width * number for place, _ in rows]
        bars = axes.bar(
            places,
            [int(size) for _, size in rows],
            0.95 * width,
            label=table[0][column],
            color=colors[column - 1],
        )
        axes.bar_label(bars, [size for _, size in rows], fontsize=7)
    middle = width * (len(columns) - 1) / 2
    axes.set_xticks(
        [place + middle for place in range(len(table) - 1)],
        [row[0].replace(", ", "\n").removesuffix(" tokens") for row in table[1:]],
    )
    axes.set(xlabel="tokens of a row", ylabel="rows", yscale="log")
    axes.set_ylim(top=6 * axes.get_ylim()[1])
    axes.legend(frameon=False, ncols=3)
    _open(axes)
    return png(figure, bbox_inches="tight")


def records(table: Table) -> bytes:
    """Tokens per second of data preparation."""
    figure = new_figure(7.5, 0.7 + 0.4 * (len(table) - 1))
    axes = figure.subplots()
    values = [float(row[1].replace(",", "")) / 1e6 for row in table[1:]]
    colors = [_OURS if row[0].startswith("text to records") else "gray" for row in table[1:]]
    _bars(axes, [row[0] for row in table[1:]], values, colors, "{:.2f}")
    axes.set_xlabel("million tokens per second")
    return png(figure, bbox_inches="tight")


def _bars(
    axes, names: Sequence[str], values: Iterable[float], colors: list[str], form: str, **options
) -> None:
    """Horizontal bars from the top down, with their values."""
    bars = axes.barh(names, list(values), color=colors, height=0.7, **options)
    axes.bar_label(bars, fmt=form, padding=4)
    axes.margins(x=0.18)
    axes.invert_yaxis()
    _open(axes)


def _open(axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
