"""Pictures of measured results, each from the rows of a table or of a JSON file."""

from __future__ import annotations

import pathlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from benchmarks.accelerators.report import computed_times
from official.xlnet.runtime.pictures import new_figure, png

_OURS, _THEIRS, _THIRD = "#29619f", "#e0912f", "#5f9e6e"
_TITLE = {"ours": "ours", "hf": "HF", "tfm": "tf-models-official"}
_COLOR = {"ours": _OURS, "hf": _THEIRS, "tfm": _THIRD}
Table = list[list[str]]  # Cells by row; the first row is the head.


def page(shown: str) -> bytes:
    """The upper part of an HTML page in Chromium."""
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))))
    with tempfile.TemporaryDirectory() as folder:
        path, picture = pathlib.Path(folder, "page.html"), pathlib.Path(folder, "page.png")
        path.write_text(shown, encoding="utf-8")
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        options += ["--window-size=1000,1500", f"--screenshot={picture}"]
        subprocess.run([browser, *options, path.as_uri()], check=True, capture_output=True)
        return picture.read_bytes()


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
        _finish(axes, xlabel=label, ylabel="µs per token", ylim=(0, None))
    figure.tight_layout()
    return png(figure)


def time_to_quality(groups: dict[str, Any]) -> bytes:
    """Held-out loss over steps, a panel a text, a thin line a run.

    Args:
      groups: {text: {"unigram_loss": …, "runs": [{"peer": …, "curve": …}, …]}}.
    """
    figure = new_figure(9, 4)
    panels = figure.subplots(1, len(groups), squeeze=False, sharey=True)[0]
    for axes, (text, found) in zip(panels, groups.items(), strict=True):
        labels = dict(_TITLE)  # Each is shown once.
        for run in found["runs"]:
            (steps, losses), peer = np.transpose(run["curve"]), run["peer"]
            options = {"color": _COLOR[peer], "label": labels.pop(peer, None)}
            axes.plot(steps, losses, ".-", alpha=0.7, **options)
        axes.axhline(found["unigram_loss"], color="gray", linestyle="--", label="unigrams")
        _finish(axes, title=text, xlabel="training steps", xlim=(0, None))
    panels[0].set_ylabel("held-out loss, nats per target")
    figure.tight_layout()
    return png(figure)


def ablation(table: Table) -> bytes:
    """Mean span losses of the rows, with 95% intervals over seeds."""
    titles, _, cells = zip(*(row[:3] for row in table[1:]), strict=True)
    means, spreads = np.array([[*cell.split(" ± "), 0][:2] for cell in cells], float).T
    colors = [_THEIRS if title.startswith(("BERT", "DAE")) else _OURS for title in titles]
    low, high = means.min(), means.max()
    return _bar_picture(
        titles,
        means,
        colors,
        "{:.2f}",
        xlabel="-log p of a held-out span, nats (the axis does not start at 0)",
        size=(8, 0.9 + 0.36 * len(titles)),
        xlim=(max(0.0, 2 * low - high), high + 0.3 * (high - low) + 0.01),
        xerr=spreads,
        capsize=3,
    )


def attention_length(table: Table) -> bytes:
    """Perplexity and time by attention length, with memory and with a sliding window."""
    columns = np.array(table[1:], float).T
    figure = new_figure(9, 4)
    panels = dict(zip(("perplexity", "milliseconds per token"), figure.subplots(1, 2), strict=True))
    for first, (title, axes) in zip((1, 3), panels.items(), strict=True):
        axes.plot(columns[0], columns[first], "o-", label="memory")
        axes.plot(columns[0], columns[first + 1], "o-", label="sliding window, stride 1")
        axes.set_xscale("log", base=2)
        _finish(axes, xlabel="attention length, tokens", title=title)
    panels["milliseconds per token"].set_yscale("log")
    figure.tight_layout()
    return png(figure)


def generation_cost(times: dict[str, Any]) -> bytes:
    """Milliseconds of each new token with the cache, and of a forward pass by length without it."""
    figure = new_figure(7, 4)
    axes = figure.subplots()
    cached, uncached = times["cached"], times["uncached"]
    axes.plot(range(2, len(cached) + 2), cached, ".", ms=2, color=_OURS, label="with the cache")
    points = list(map(int, uncached)), list(uncached.values())
    axes.plot(*points, "o-", color=_THEIRS, label="a whole forward pass")
    title = "Cost of one new token"
    _finish(axes, xlabel="token", ylabel="milliseconds", yscale="log", title=title)
    return png(figure, bbox_inches="tight")


def token_steps(steps: dict[str, Any]) -> bytes:
    """Steps of each token of a sentence, as `token_steps` draws them."""
    from official.xlnet.projects.pictures.attention_maps import TokenSteps

    return png(TokenSteps(steps["pieces"], np.array(steps["num_steps"]), steps["layers"]).plot())


def passes(lines: dict[str, dict[str, tuple[float, float]]]) -> bytes:
    """Loss of held-out spans by the number of passes that fill them, with intervals."""
    figure = new_figure(7, 4)
    axes = figure.subplots()
    for title, losses in lines.items():
        means, halves = zip(*losses.values(), strict=True)
        axes.errorbar([*map(int, losses)], means, yerr=halves, fmt="o-", capsize=3, label=title)
    labels = {"xlabel": "passes for eight tokens", "ylabel": "loss of a span, nats per token"}
    _finish(axes, {"frameon": False, "ncols": 2}, xticks=[1, 2, 4, 8], **labels)
    return png(figure, bbox_inches="tight")


def serving(table: Table) -> bytes:
    """Median milliseconds of a request by length, ours and HF's."""
    lengths, ours, _, theirs, *_ = zip(*table[1:], strict=True)
    milliseconds = ([float(cell.removesuffix(" ms")) for cell in cells] for cells in (ours, theirs))
    figure = new_figure(7, 3.6)
    axes = figure.subplots()
    places = np.arange(len(lengths))
    series = zip(("ours", "HF"), (_OURS, _THEIRS), milliseconds, strict=True)
    for number, (name, color, values) in enumerate(series):
        bars = axes.bar(places + 0.4 * number, values, 0.38, label=name, color=color)
        axes.bar_label(bars, fmt="{:.0f}")
    axes.set_xticks(places + 0.2, lengths)
    axes.set(xlabel="tokens of a request", ylabel="median, milliseconds", yscale="log")
    _finish(axes, legend={"frameon": False, "ncols": 2}, ylim=(None, 4 * axes.get_ylim()[1]))
    return png(figure, bbox_inches="tight")


def accelerators(rows: list[dict[str, Any]]) -> bytes:
    """Tokens per second of a chip, by what its compiler says; steps of pre-training."""
    best: dict[tuple[str, str], tuple[float, int]] = {}
    for row in rows:
        key = row["step"], row["chip"]
        rate = row["tokens"] / computed_times(row).longest
        best[key] = max(best.get(key, (0.0, 0)), (rate, row["batch_size"]))
    names = [f"{step}, {chip}, {size} rows" for (step, chip), (_, size) in best.items()]
    colors = [_OURS if step == "base" else _THIRD for step, _ in best]
    return _bar_picture(
        names,
        [rate for rate, _ in best.values()],
        colors,
        "{:,.0f}",
        xlabel="tokens per second, computed",
        size=(7.5, 0.9 + 0.36 * len(names)),
    )


def largest_batch(table: Table) -> bytes:
    """Largest batches of fine-tuning on a GPU of 16 GB, the release's and ours."""
    head, *rows = table
    figure = new_figure(7.5, 3.6)
    axes = figure.subplots()
    columns = [c for c in range(1, len(head)) if any(row[c] != "?" for row in rows)]
    width = 0.8 / len(columns)
    colors = ["", _THEIRS, "lightgray", "gray", _THIRD, _OURS]
    for number, column in enumerate(columns):
        sizes = {place: row[column] for place, row in enumerate(rows) if row[column] != "?"}
        bars = axes.bar(
            [place + width * number for place in sizes],
            list(map(int, sizes.values())),
            0.95 * width,
            label=head[column],
            color=colors[column],
        )
        axes.bar_label(bars, list(sizes.values()), fontsize=7)
    names = [row[0].replace(", ", "\n").removesuffix(" tokens") for row in rows]
    axes.set_xticks(np.arange(len(rows)) + width * (len(columns) - 1) / 2, names)
    axes.set(xlabel="tokens of a row", ylabel="rows", yscale="log")
    _finish(axes, legend={"frameon": False, "ncols": 3}, ylim=(None, 6 * axes.get_ylim()[1]))
    return png(figure, bbox_inches="tight")


def records(table: Table) -> bytes:
    """Tokens per second of data preparation."""
    names, rates, *_ = zip(*table[1:], strict=True)
    return _bar_picture(
        names,
        [float(rate.replace(",", "")) / 1e6 for rate in rates],
        [_OURS if name.startswith("text to records") else "gray" for name in names],
        "{:.2f}",
        xlabel="million tokens per second",
        size=(7.5, 0.7 + 0.4 * len(names)),
    )


def _bar_picture(
    *bars: Any,
    xlabel: str,
    size: tuple[float, float],
    xlim: tuple[float, float] | None = None,
    **options: Any,
) -> bytes:
    """A picture with nothing but horizontal bars; see `_bars`."""
    figure = new_figure(*size)
    axes = figure.subplots()
    _bars(axes, *bars, **options)
    axes.set(xlabel=xlabel, **({"xlim": xlim} if xlim else {}))
    return png(figure, bbox_inches="tight")


def _bars(
    axes, names: Sequence[str], values: Iterable[float], colors: list[str], form: str, **options
) -> None:
    """Horizontal bars from the top down, with their values."""
    bars = axes.barh(names, list(values), color=colors, height=0.7, **options)
    axes.bar_label(bars, fmt=form, padding=4)
    axes.margins(x=0.18)
    axes.invert_yaxis()
    axes.spines[["top", "right"]].set_visible(False)


def _finish(axes, legend: dict[str, Any] | None = None, **properties: Any) -> None:
    """Titles and limits of a panel, its legend, and no frame at the top and on the right."""
    axes.set(**properties)
    axes.legend(**(legend or {}))
    axes.spines[["top", "right"]].set_visible(False)


def surprisal(words: dict[str, list[dict[str, Any]]]) -> bytes:
    """Surprisal of the words of a pair of sentences: {good or bad: words}."""
    figure = new_figure(8, 3.5)
    axes = figure.subplots()
    for (side, found), color in zip(words.items(), (_OURS, _THEIRS), strict=True):
        sentence = " ".join(word["word"] for word in found)
        values = [word["surprisal"] for word in found]
        label = f"{sentence} ({sum(values):.1f} nats)"
        axes.plot(values, "o-" if side == "good" else "s--", color=color, label=label)
    good, bad = ([word["word"] for word in found] for found in words.values())
    names = [a if a == b else f"{a}\n{b}" for a, b in zip(good, bad, strict=True)]
    axes.set_xticks(range(len(names)), names)
    _finish(axes, {"loc": "lower left"}, ylabel="surprisal, nats", ylim=(0, None))
    return png(figure, bbox_inches="tight")


def minimal_pairs(orders: dict[str, dict[str, Any]]) -> bytes:
    """Accuracy on minimal pairs by group, with intervals: {order: metrics}."""
    groups = list(next(iter(orders.values()))["groups"])
    figure = new_figure(8, 1.2 + (0.25 + 0.15 * len(orders)) * len(groups))
    axes = figure.subplots()
    shifts = 0.7 * (np.arange(len(orders)) / len(orders) - 0.5)
    for number, (order, metrics) in enumerate(orders.items()):
        found = [metrics["groups"][group] for group in groups]
        shares = np.array([each["accuracy"] for each in found])
        low, high = np.transpose([each["accuracy_interval"] for each in found])
        places = np.arange(len(groups)) + shifts[number]
        error = [shares - low, high - shares]
        color = f"C{number}"
        axes.errorbar(shares, places, xerr=error, fmt="o", capsize=3, color=color, label=order)
    axes.axvline(0.5, color="gray", linestyle="--")
    axes.set_yticks(range(len(groups)), groups)
    axes.invert_yaxis()
    _finish(axes, xlabel="share of pairs whose good sentence is more probable", xlim=(0, 1.02))
    return png(figure, bbox_inches="tight")
