"""Figures of docs/concepts.md, created from a data set and a trained model.

    python -m tools.figures --data=runs/ablation/both --model=runs/ablation/models/xlnet_k6-0

Targets and orders are sampled as in training; masks are those of `xlnet inspect records`.
"""

from __future__ import annotations

import argparse
import os

import matplotlib

matplotlib.use("Agg")
import numpy as np
from matplotlib import pyplot

from official.xlnet.cli import set_environment_defaults

_SHOWN = 12  # Number of tokens in a close-up.
_NUM_ORDERS = 4
_WINDOW_INDEX = 20  # Window of the first lane that is drawn.
_NUM_EPOCHS = 60  # Epochs for which its targets are sampled.
_SEEN, _HIDDEN, _HERE = "#29619f", "#eeeeee", "#b3261e"


def main() -> None:
    """Creates all figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", required=True, help="data set of `xlnet prepare`")
    parser.add_argument("--model", required=True, help="model directory of `xlnet pretrain`")
    parser.add_argument("--output", default="docs/images", help="output directory")
    parser.add_argument("--text", default=_TEXT, help="input text of the attention maps")
    arguments = parser.parse_args()
    set_environment_defaults()
    from official.xlnet.analysis.attention_maps import attention_maps
    from official.xlnet.analysis.attention_page import as_png
    from official.xlnet.analysis.record_windows import read_window
    from official.xlnet.configs.experiment import XLNetConfig

    config = XLNetConfig.load(arguments.model)
    windows = [
        read_window(arguments.data, config, index=_WINDOW_INDEX, epoch=epoch)
        for epoch in range(_NUM_EPOCHS)
    ]
    os.makedirs(arguments.output, exist_ok=True)
    for name, figure in (
        ("orders", orders(windows)),
        ("streams", streams(windows[0])),
        ("masks", masks(windows[0])),
        ("coverage", coverage(windows)),
    ):
        path = os.path.join(arguments.output, f"{name}.png")
        figure.savefig(path, dpi=120, bbox_inches="tight")
        pyplot.close(figure)
    maps = attention_maps(arguments.model, arguments.text)
    layers, heads = (range(size) for size in maps.weights.shape[:2])
    with open(os.path.join(arguments.output, "attention.png"), "wb") as file:
        file.write(as_png(maps, layers, heads))


def orders(windows):
    """Figure 4 of the paper: prediction of the same token under several factorization orders."""
    from official.xlnet.analysis.window_page import query_mask

    counts = sum(window.is_target.astype(int) for window in windows)
    half = windows[0].part.count("reuse")
    position = int(np.argmax(counts[_SHOWN // 2 : half - _SHOWN // 2])) + _SHOWN // 2
    chosen = [window for window in windows if window.is_target[position]][:_NUM_ORDERS]
    places = _around(position, half)
    figure, rows = pyplot.subplots(len(chosen), 1, figsize=(11, 0.8 * len(chosen)), squeeze=False)
    for axes, window in zip(rows[:, 0], chosen, strict=True):
        _boxes(axes, window, places, query_mask(window)[position], position)
        axes.set_ylabel(f"epoch {window.epoch}", rotation=0, ha="right", va="center", fontsize=9)
    return figure


def streams(window):
    """Figure 1 of the paper: attention of the content and the query stream at a target."""
    from official.xlnet.analysis.window_page import content_mask, query_mask

    half = window.part.count("reuse")
    position = int(np.flatnonzero(window.is_target[:half])[-1])
    places = _around(position, half)
    figure, rows = pyplot.subplots(2, 1, figsize=(11, 1.8))
    for axes, mask, name in zip(
        rows, (content_mask(window), query_mask(window)), ("content", "query"), strict=True
    ):
        _boxes(axes, window, places, mask[position], position)
        axes.set_ylabel(name, rotation=0, ha="right", va="center", fontsize=9)
    return figure


def masks(window):
    """Figures 5 and 6 of the paper: attention masks of both streams."""
    from official.xlnet.analysis.window_page import content_mask, query_mask

    figure, pair = pyplot.subplots(1, 2, figsize=(10, 5))
    for axes, mask, name in zip(
        pair,
        (content_mask(window), query_mask(window)),
        ("content stream: order[j] ≤ order[i]", "query stream, at targets: order[j] < order[i]"),
        strict=True,
    ):
        colors = matplotlib.colors.ListedColormap([_HIDDEN, _SEEN])
        axes.imshow(mask, cmap=colors, interpolation="nearest")
        border = window.part.count("reuse") - 0.5
        axes.axhline(border, color=_HERE, linewidth=0.8)
        axes.axvline(border, color=_HERE, linewidth=0.8)
        axes.set(title=name, xlabel="key j", ylabel="query i")
    return figure


def coverage(windows):
    """Appendix A.5: fraction of dependencies (target, other token) covered by each objective.

    With denoising, a target never depends on another target; with permutation language modeling,
    on those before it in the factorization order; with a causal model, on those to its left.
    """
    from official.xlnet.analysis.window_page import query_mask

    shares = []
    for window in windows:
        target = window.is_target
        pairs = target[:, None] & target[None] & ~np.eye(len(target), dtype=bool)
        seen = query_mask(window)
        left = np.tri(len(target), k=-1, dtype=bool)
        half = np.arange(len(target)) >= window.part.count("reuse")
        allowed = half[:, None] >= half[None]
        contexts = target[:, None] & ~target[None]
        shares.append(
            [
                [(mask & kind).sum() / kind.sum() for kind in (contexts, pairs)]
                for mask in (allowed & ~target[None], seen, left)
            ]
        )
    mean = np.mean(shares, axis=0)
    figure, axes = pyplot.subplots(figsize=(7, 3.2))
    places = np.arange(3)
    for number, (name, color) in enumerate((("a context token", _SEEN), ("another target", _HERE))):
        bars = axes.bar(places + 0.35 * number, mean[:, number], 0.33, label=name, color=color)
        axes.bar_label(bars, fmt="{:.2f}")
    axes.set_xticks(places + 0.17, ["denoising", "permutation", "causal"])
    axes.set(ylabel="fraction of pairs covered in one epoch", ylim=(0, 1.1))
    axes.legend(title="a target's dependency on", frameon=False)
    return figure


def _around(position: int, limit: int) -> range:
    first = max(0, min(position - _SHOWN // 2, limit - _SHOWN))
    return range(first, min(limit, first + _SHOWN))


def _boxes(axes, window, places: range, seen: np.ndarray, position: int) -> None:
    """Draws tokens as boxes: the query is outlined in red, tokens it attends to are dark."""
    for column, i in enumerate(places):
        color = _SEEN if seen[i] else _HIDDEN
        edge = _HERE if i == position else "#888888"
        width = 2.5 if i == position else 0.8
        axes.add_patch(
            pyplot.Rectangle((column + 0.05, 0.1), 0.9, 0.8, fc=color, ec=edge, lw=width)
        )
        label = window.pieces[i].replace("▁", "") or "␣"
        step = f"\n{window.order[i]}" if window.is_target[i] else ""
        axes.text(
            *(column + 0.5, 0.5, label + step),
            color="white" if seen[i] else "black",
            ha="center",
            va="center",
            fontsize=8,
        )
    axes.set(xlim=(0, len(places)), ylim=(0, 1), xticks=[], yticks=[])
    for side in axes.spines.values():
        side.set_visible(False)


_TEXT = (
    "The Congress of the United States has the power to provide for the common defense and the "
    "general welfare, and the people of this country have every right to expect that we use it."
)


if __name__ == "__main__":
    main()
