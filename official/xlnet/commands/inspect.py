"""Shows a window of a data set: xlnet inspect records DIR.

Prints tokens, parts, direction, document ends, and the targets and order that one epoch draws,
and writes a page of HTML with the attention masks of that window.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from absl import flags

from official.xlnet.config import XLNetConfig
from official.xlnet.inspect_records import as_text, read_window
from official.xlnet.window_page import as_html

TAKES_ARGUMENTS = True
FLAGS = flags.FlagValues()
FLAGS.set_gnu_getopt(True)  # Flags may come after the arguments.
_SPLIT = flags.DEFINE_string("split", "train", "train or heldout.", flag_values=FLAGS)
_LANE = flags.DEFINE_integer("lane", 0, "Number of the lane.", flag_values=FLAGS)
_INDEX = flags.DEFINE_integer("index", 0, "Number of the window in its lane.", flag_values=FLAGS)
_EPOCH = flags.DEFINE_integer("epoch", 0, "Epoch of the draw.", flag_values=FLAGS)
_CONFIG = flags.DEFINE_string(
    "config", None, "How targets are drawn: a YAML file or model directory.", flag_values=FLAGS
)
_HTML = flags.DEFINE_string(
    "html", None, "File of the page; default: SPLIT-LANE-INDEX.html, here.", flag_values=FLAGS
)


def run(*arguments: str) -> dict[str, Any]:
    """Returns `html`, `window_id`, `is_reversed`, `is_next`, `context_length` and `targets`."""
    if len(arguments) != 2 or arguments[0] != "records":
        raise flags.Error(f"expected `records DIR`, got {' '.join(arguments) or 'nothing'}")
    window = read_window(
        arguments[1],
        XLNetConfig.load(_CONFIG.value) if _CONFIG.value else None,
        _SPLIT.value,
        _LANE.value,
        _INDEX.value,
        _EPOCH.value,
    )
    path = _HTML.value or f"{_SPLIT.value}-{_LANE.value}-{_INDEX.value}.html"
    with open(path, "w", encoding="utf-8") as file:
        file.write(as_html(window))
    print(as_text(window, color=sys.stdout.isatty()))
    return {
        "html": os.path.abspath(path),
        "window_id": window.window_id,
        "is_reversed": window.is_reversed,
        "is_next": window.is_next,
        "context_length": window.context_length,
        "targets": int(window.is_target.sum()),
    }
