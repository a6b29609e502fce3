"""`xlnet inspect attention` and `xlnet inspect records`: pages that show a model or its data."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any

from official.xlnet.api.arguments import Model
from official.xlnet.api.verbs import INSPECT, register_verb
from official.xlnet.configs.registry import REMOVED_VERBS
from official.xlnet.configs.validation import require
from official.xlnet.files.arguments import COMMAS, OutputFile, Path
from official.xlnet.files.public import public
from official.xlnet.files.schema import OneOf, Range


@register_verb("inspect attention", group=INSPECT)
@public()
def attention(
    model: Model,
    text: str,
    output: OutputFile,
    text_pair: str | None = None,
    max_tokens: Annotated[int, Range(1, 4096)] = 128,
    layers: Annotated[Sequence[int], COMMAS] = (),
    heads: Annotated[Sequence[int], COMMAS] = (),
) -> dict[str, Any]:
    """Shows the attention maps of a text: an interactive page or an image.

    Also lists the heads with the attention patterns of figures 2 and 3 of the paper.

    Args:
      model: model directory.
      text: input text.
      output: output file, .html or .png.
      text_pair: second text, a segment of its own.
      max_tokens: maximum number of tokens; longer texts are truncated.
      layers: indices of layers; default: all.
      heads: indices of heads; default: all.

    Returns:
      The path, the number of tokens, and the strongest head of each pattern.

    Example:
      $ xlnet inspect attention --model=runs/model --text='The cat sat.' --output=maps.html
    """
    from official.xlnet.checkpoints.any_format import load_config
    from official.xlnet.data.result_files import check_ending
    from official.xlnet.files.atomic import write_bytes
    from official.xlnet.projects.pictures.attention_maps import attention_maps
    from official.xlnet.projects.pictures.attention_page import as_html
    from official.xlnet.projects.pictures.attention_patterns import find_patterns
    from official.xlnet.runtime.pictures import png

    ending = check_ending(output, (".html", ".png"))
    settings = load_config(model).model
    _check_indices("layers", layers, settings.num_layers)
    _check_indices("heads", heads, settings.num_heads)
    layers = layers or range(settings.num_layers)
    heads = heads or range(settings.num_heads)
    maps = attention_maps(model, text, max_tokens, text_pair)
    if ending == ".html":
        content = as_html(maps, layers, heads).encode()
    else:
        content = png(maps.plot(layers, heads))
    write_bytes(output, content)
    patterns = {}
    for match in find_patterns(maps.weights):
        patterns[match.pattern] = {
            "layer": match.layer,
            "head": match.head,
            "strength": round(match.strength, 3),
            "heads": match.num_heads,
        }
    return {
        "output": os.path.abspath(output),
        "tokens": len(maps.pieces),
        "patterns": patterns,
    }


def _check_indices(name: str, indices: Sequence[int], size: int) -> None:
    is_inside = all(0 <= index < size for index in indices)
    require(is_inside, name, f"integers from 0 to {size - 1}", [*indices])


@register_verb("inspect records", positional="data", group=INSPECT)
@public()
def records(
    data: Path,
    split: Annotated[str, OneOf(("train", "heldout"))] = "train",
    lane: Annotated[int, Range(0)] = 0,
    index: Annotated[int, Range(0)] = 0,
    epoch: Annotated[int, Range(0)] = 0,
    config: Path | None = None,
    output: OutputFile | None = None,
) -> dict[str, Any]:
    """Shows a window of a data set: xlnet inspect records DIR.

    Prints tokens, segments, direction, document boundaries, and the targets and factorization
    order sampled in one epoch; writes an HTML page with the attention masks of the window.

    Args:
      data: directory of the data set.
      split: split of the data set.
      lane: index of the lane.
      index: index of the window in its lane.
      epoch: epoch for which targets are sampled.
      config: configuration for sampling targets: YAML file or model; default: settings of the data
        set.
      output: output file, .html; default: SPLIT-LANE-INDEX.html.

    Returns:
      The path of the page and facts about the window.

    Example:
      $ xlnet inspect records runs/data --index=3 --output=window.html
    """
    from official.xlnet.checkpoints.any_format import load_config
    from official.xlnet.configs.experiment import recipe_path
    from official.xlnet.data.result_files import check_ending
    from official.xlnet.files.atomic import write_bytes
    from official.xlnet.projects.pictures.record_windows import as_text, read_window
    from official.xlnet.projects.pictures.window_page import as_html

    path = output or f"{split}-{lane}-{index}.html"
    check_ending(path, (".html",))
    settings = load_config(recipe_path(config)) if config else None
    window = read_window(data, settings, split, lane, index, epoch)
    write_bytes(path, as_html(window).encode())
    print(as_text(window, color=sys.stdout.isatty()))
    return {
        "output": os.path.abspath(path),
        "window_id": window.window_id,
        "is_reversed": window.is_reversed,
        "is_next": window.is_next,
        "context_length": window.context_length,
        "targets": int(window.is_target.sum()),
    }


@REMOVED_VERBS.register("inspect runs")
def instead_of_runs() -> str:
    """Returns what shows the curves of runs today."""
    return "tensorboard --logdir=DIR shows the curves of runs"


@REMOVED_VERBS.register("inspect steps")
def instead_of_steps() -> str:
    """Returns what counts the steps of tokens today."""
    return "use official.xlnet.projects.pictures.attention_maps.token_steps in Python"
