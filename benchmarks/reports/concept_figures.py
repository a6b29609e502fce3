"""Pictures of docs/concepts.md and looking_inside.md, from windows and maps in docs/concepts.json.

    python -m benchmarks.reports.concept_figures --data=runs/ablation/both \
      --model=runs/ablation/models/xlnet_k6-0 --attention_model=runs/tiny/model

writes the file, from a data set and a model trained on it: targets and orders of one window as they
are sampled in training, in many epochs, and the attention maps of a sentence.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.harness.command_line import flag, parse, required
from official.xlnet.files.json_files import write_json
from official.xlnet.runtime.pictures import new_figure, png

RESULTS = "docs/concepts.json"
_SHOWN = 7  # Number of tokens in a close-up.
_NUM_ORDERS = 4
_WINDOW_INDEX = 20  # Window of the first lane that is drawn.
_NUM_EPOCHS = 60  # Epochs for which its targets are sampled.
_DIGITS = 4  # Of attention weights.
_SEEN, _HIDDEN, _HERE = "#29619f", "#eeeeee", "#b3261e"
_TEXT = (
    "The Congress of the United States has the power to provide for the common defense and the "
    "general welfare, and the people of this country have every right to expect that we use it."
)


def main() -> None:
    """Writes the file."""
    flags = parse(
        __doc__,
        data=required("data set of `xlnet prepare`"),
        model=required("model directory of `xlnet pretrain`"),
        attention_model=flag(None, "model of the attention maps; default: --model"),
        text=flag(_TEXT, "input text of the attention maps"),
    )
    from official.xlnet.configs.experiment import XLNetConfig
    from official.xlnet.projects.pictures.attention_maps import attention_maps
    from official.xlnet.projects.pictures.record_windows import read_window

    config = XLNetConfig.load(flags.model)
    windows = [
        read_window(flags.data, config, index=_WINDOW_INDEX, epoch=epoch)
        for epoch in range(_NUM_EPOCHS)
    ]
    maps = attention_maps(flags.attention_model or flags.model, flags.text)
    tree = {
        "pieces": windows[0].pieces,
        "reuse_len": windows[0].part.count("reuse"),
        "order": [window.order.tolist() for window in windows],
        "is_target": [window.is_target.astype(int).tolist() for window in windows],
        "attention": {
            "pieces": maps.pieces,
            "weights": np.round(maps.weights.astype(np.float64), _DIGITS).tolist(),
        },
    }
    write_json(RESULTS, tree, indent=None)


def orders(tree: dict[str, Any]) -> bytes:
    """Figure 4 of the paper: prediction of the same token under several factorization orders."""
    is_target = np.array(tree["is_target"], bool)
    margin = _SHOWN // 2
    middle = is_target.sum(axis=0)[margin : tree["reuse_len"] - margin]
    position = int(np.argmax(middle)) + margin
    epochs = np.flatnonzero(is_target[:, position])[:_NUM_ORDERS].tolist()
    masks = [_masks(tree, epoch)[1][position] for epoch in epochs]
    return _rows(tree, position, epochs, masks, [f"epoch {epoch}" for epoch in epochs])


def streams(tree: dict[str, Any]) -> bytes:
    """Figure 1 of the paper: attention of the content and the query stream at a target."""
    epoch, position = next(
        (epoch, int(position))
        for epoch, is_target in enumerate(tree["is_target"])
        for position in np.flatnonzero(is_target[: tree["reuse_len"]])[::-1]
        if "▁" not in (shown := [tree["pieces"][i] for i in _places(tree, position)])
        and shown[0] != "."  # A space or a full stop looks like a stray mark.
    )
    masks = [mask[position] for mask in _masks(tree, epoch)]
    return _rows(tree, position, [epoch, epoch], masks, ["content", "query"])


def masks(tree: dict[str, Any]) -> bytes:
    """Figures 5 and 6 of the paper: attention masks of both streams."""
    from matplotlib.colors import ListedColormap

    names = (
        "content stream:\norder[j] ≤ order[i]",
        "query stream, at targets:\norder[j] < order[i]",
    )
    figure = new_figure(8, 4.4)
    for axes, mask, name in zip(figure.subplots(1, 2), _masks(tree, 0), names, strict=True):
        axes.imshow(mask, cmap=ListedColormap([_HIDDEN, _SEEN]), interpolation="nearest")
        for draw in (axes.axhline, axes.axvline):
            draw(tree["reuse_len"] - 0.5, color=_HERE, linewidth=0.8)
        axes.set(title=name, xlabel="key j", ylabel="query i")
    return png(figure, bbox_inches="tight")


def coverage(tree: dict[str, Any]) -> bytes:
    """Appendix A.5: fraction of dependencies (target, other token) covered by each objective.

    With denoising, a target never depends on another target; with permutation language modeling,
    on those before it in the factorization order; with a causal model, on those to its left.
    """
    half = np.arange(len(tree["pieces"])) >= tree["reuse_len"]
    left = np.tri(len(half), k=-1, dtype=bool)
    shares = []
    for epoch, is_target in enumerate(np.array(tree["is_target"], bool)):
        known = (half[:, None] >= half) & ~is_target
        kinds = (
            ~is_target & is_target[:, None],
            is_target & is_target[:, None] & ~np.eye(len(half), dtype=bool),
        )
        masks = known, _masks(tree, epoch)[1], left
        shares.append([[(mask & kind).sum() / kind.sum() for kind in kinds] for mask in masks])
    figure = new_figure(7, 3.4)
    axes = figure.subplots()
    names = {"a context token": _SEEN, "another target": _HERE}
    series = zip(names.items(), np.mean(shares, axis=0).T, strict=True)
    for number, ((name, color), values) in enumerate(series):
        bars = axes.bar(np.arange(3) + 0.35 * number, values, 0.33, label=name, color=color)
        axes.bar_label(bars, fmt="{:.2f}")
    axes.set_xticks(np.arange(3) + 0.17, ["denoising", "permutation", "causal"])
    axes.set(ylabel="fraction of pairs in one epoch", ylim=(0, 1.35))
    axes.legend(title="a target's dependency on", frameon=False, ncols=2, loc="upper center")
    return png(figure, bbox_inches="tight")


def with_patterns(tree: dict[str, Any]) -> dict[str, Any]:
    """The attention maps, and the strongest head of each pattern as it is found today."""
    from official.xlnet.projects.pictures.attention_patterns import find_patterns

    found = find_patterns(np.array(tree["attention"]["weights"]))
    heads = [[head.pattern, head.layer, head.head, round(head.strength, 2)] for head in found]
    return {"attention": tree["attention"], "patterns": heads}


def attention(tree: dict[str, Any]) -> bytes:
    """All heads of a model, and the strongest head of each pattern."""
    from official.xlnet.projects.pictures.attention_maps import AttentionMaps

    maps = AttentionMaps(tree["attention"]["pieces"], np.array(tree["attention"]["weights"]))
    return png(maps.plot())


def _masks(tree: dict[str, Any], epoch: int) -> tuple[np.ndarray, np.ndarray]:
    """Who attends to whom, bool [T, T]: the content stream, and the query stream at targets."""
    order = np.array(tree["order"][epoch])
    is_target = np.array(tree["is_target"][epoch], bool)
    return order <= order[:, None], (order < order[:, None]) & is_target[:, None]


def _places(tree: dict[str, Any], position: int) -> range:
    """Tokens of a close-up around a position."""
    first = max(0, min(position - _SHOWN // 2, tree["reuse_len"] - _SHOWN))
    return range(first, min(tree["reuse_len"], first + _SHOWN))


def _rows(
    tree: dict[str, Any],
    position: int,
    epochs: Sequence[int],
    masks: Sequence[np.ndarray],
    names: Sequence[str],
) -> bytes:
    """Draws rows of tokens as boxes: the query is outlined in red, tokens it attends to are dark.

    Boxes are as wide as the words in them.
    """
    from matplotlib.patches import Rectangle

    places = _places(tree, position)
    labels = [tree["pieces"][i].replace("▁", "") or "␣" for i in places]
    widths = [max(4, len(label) + 1.5) for label in labels]
    lefts = np.cumsum([0, *widths])
    figure = new_figure(6, 0.75 * len(names))
    for axes, epoch, mask, name in zip(
        figure.subplots(len(names), squeeze=False)[:, 0], epochs, masks, names, strict=True
    ):
        for i, label, left, width in zip(places, labels, lefts[:-1], widths, strict=True):
            edge, line = (_HERE, 2.5) if i == position else ("#888888", 0.8)
            box = (left + 0.2, 0.06), width - 0.4, 0.88
            axes.add_patch(Rectangle(*box, fc=_SEEN if mask[i] else _HIDDEN, ec=edge, lw=line))
            step = f"\n{tree['order'][epoch][i]}" if tree["is_target"][epoch][i] else ""
            color = "white" if mask[i] else "black"
            center = left + width / 2, 0.5
            axes.text(*center, label + step, color=color, ha="center", va="center", fontsize=9)
        axes.set(xlim=(0, lefts[-1]), ylim=(0, 1), xticks=[], yticks=[])
        axes.set_ylabel(name, rotation=0, ha="right", va="center")
        axes.spines[:].set_visible(False)
    return png(figure, bbox_inches="tight")


if __name__ == "__main__":
    main()
