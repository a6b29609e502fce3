"""Visualizes records, attention maps or training runs: records DIR | attention | runs DIR...

`records DIR` prints a window of a data set: tokens, segments, direction, document boundaries, and
the targets and factorization order sampled in one epoch. It also writes an HTML page with the
attention masks of the window.

`attention --model=DIR --text=TEXT --output=FILE` writes the attention maps of a text, as an
interactive page (.html) or an image (.png), and lists the heads with the attention patterns of
figures 2 and 3 of the paper.

`runs DIR... --output=FILE` plots the training curves of one or more model directories.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from absl import flags

from official.xlnet.checkpoints.any_format import load_config
from official.xlnet.files.atomic import atomic_write

TAKES_ARGUMENTS = True
FLAGS = flags.FlagValues()
FLAGS.set_gnu_getopt(True)  # Flags may follow positional arguments.
_SPLIT = flags.DEFINE_string(
    "split", "train", "records: split, train or heldout.", flag_values=FLAGS
)
_LANE = flags.DEFINE_integer(
    "lane",
    0,
    "records: index of the lane.",
    lower_bound=0,
    upper_bound=2**31 - 1,
    flag_values=FLAGS,
)
_INDEX = flags.DEFINE_integer(
    "index",
    0,
    "records: index of the window in its lane.",
    lower_bound=0,
    upper_bound=2**31 - 1,
    flag_values=FLAGS,
)
_EPOCH = flags.DEFINE_integer(
    "epoch",
    0,
    "records: epoch for which targets are sampled.",
    lower_bound=0,
    upper_bound=2**31 - 1,
    flag_values=FLAGS,
)
_CONFIG = flags.DEFINE_string(
    "config",
    None,
    "records: configuration for sampling targets; a YAML file or model directory.",
    flag_values=FLAGS,
)
_HTML = flags.DEFINE_string(
    "html", None, "records: output file; default: SPLIT-LANE-INDEX.html.", flag_values=FLAGS
)
_MODEL = flags.DEFINE_string("model", None, "attention: model directory.", flag_values=FLAGS)
_TEXT = flags.DEFINE_string("text", None, "attention: input text.", flag_values=FLAGS)
_TEXT_PAIR = flags.DEFINE_string(
    "text_pair", None, "attention: second text, a segment of its own.", flag_values=FLAGS
)
_LAYERS = flags.DEFINE_list(
    "layers", [], "attention: indices of layers; default: all.", flag_values=FLAGS
)
_HEADS = flags.DEFINE_list(
    "heads", [], "attention: indices of heads; default: all.", flag_values=FLAGS
)
_MAX_TOKENS = flags.DEFINE_integer(
    "max_tokens",
    128,
    "attention: maximum number of tokens; longer texts are truncated.",
    lower_bound=1,
    upper_bound=4096,
    flag_values=FLAGS,
)
_OUTPUT = flags.DEFINE_string(
    "output",
    None,
    "attention: output file, .html or .png; runs: output file, .png.",
    flag_values=FLAGS,
)


def run(*arguments: str) -> dict[str, Any]:
    """Writes the visualization; returns the path of the file and a summary of its contents."""
    kind, *directories = arguments or ("nothing",)
    if kind == "records" and len(directories) == 1:
        return _records(directories[0])
    if kind == "attention" and not directories:
        return _attention()
    if kind == "runs" and directories:
        return _runs(directories)
    raise flags.Error(
        f"expected `records DIR`, `attention` or `runs DIR...`, got {' '.join(arguments) or kind}"
    )


def _records(directory: str) -> dict[str, Any]:
    from official.xlnet.analysis.record_windows import as_text, read_window
    from official.xlnet.analysis.window_page import as_html

    window = read_window(
        directory,
        load_config(_CONFIG.value) if _CONFIG.value else None,
        _SPLIT.value,
        _LANE.value,
        _INDEX.value,
        _EPOCH.value,
    )
    path = _HTML.value or f"{_SPLIT.value}-{_LANE.value}-{_INDEX.value}.html"
    _write(path, as_html(window).encode())
    print(as_text(window, color=sys.stdout.isatty()))
    return {
        "html": os.path.abspath(path),
        "window_id": window.window_id,
        "is_reversed": window.is_reversed,
        "is_next": window.is_next,
        "context_length": window.context_length,
        "targets": int(window.is_target.sum()),
    }


def _attention() -> dict[str, Any]:
    from official.xlnet.analysis.attention_maps import attention_maps
    from official.xlnet.analysis.attention_page import as_html, as_png
    from official.xlnet.analysis.attention_patterns import find_patterns

    for flag in (_MODEL, _TEXT):
        if not flag.value:
            raise flags.Error(f"--{flag.name} is required")
    path = _output((".html", ".png"))
    model = load_config(_MODEL.value).model
    layers = _numbers(_LAYERS, model.num_layers)
    heads = _numbers(_HEADS, model.num_heads)
    maps = attention_maps(_MODEL.value, _TEXT.value, _MAX_TOKENS.value, _TEXT_PAIR.value)
    if path.endswith(".html"):
        _write(path, as_html(maps, layers, heads).encode())
    else:
        _write(path, as_png(maps, layers, heads))
    return {
        "output": os.path.abspath(path),
        "tokens": len(maps.pieces),
        "patterns": {
            found.pattern: {
                "layer": found.layer,
                "head": found.head,
                "strength": round(found.strength, 3),
                "heads": found.num_heads,
            }
            for found in find_patterns(maps.weights)
        },
    }


def _runs(directories: list[str]) -> dict[str, Any]:
    from official.xlnet.analysis.training_curves import training_curves

    path = _output((".png",))
    _write(path, training_curves(directories))
    return {"output": os.path.abspath(path), "runs": len(directories)}


def _output(endings: tuple[str, ...]) -> str:
    path = _OUTPUT.value or ""
    if not path.endswith(endings):
        raise flags.Error(f"--output: expected a file ending in {' or '.join(endings)}")
    return path


def _numbers(flag: flags.FlagHolder, limit: int) -> list[int]:
    """Integers of a list flag, in [0, limit); all of them by default."""
    numbers = [int(text) if text.isdecimal() else -1 for text in flag.value]
    if any(not 0 <= number < limit for number in numbers):
        given = ",".join(flag.value)
        raise flags.Error(f"--{flag.name}: expected integers from 0 to {limit - 1}, got {given}")
    return numbers or list(range(limit))


def _write(path: str, content: bytes) -> None:
    with atomic_write(path) as file:
        file.write(content)
