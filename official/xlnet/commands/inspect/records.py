"""Shows a window of a data set: xlnet inspect records DIR.

Prints tokens, segments, direction, document boundaries, and the targets and factorization order
sampled in one epoch; writes an HTML page with the attention masks of the window.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from absl import flags

from official.xlnet.checkpoints.any_format import load_config
from official.xlnet.commands.inspect import check_ending, write
from official.xlnet.files.staging import on_local_disk

_LARGEST = 2**31 - 1

TAKES_ARGUMENTS = True
FLAGS = flags.FlagValues()
FLAGS.set_gnu_getopt(True)  # Flags may follow positional arguments.
_SPLIT = flags.DEFINE_string("split", "train", "Split, train or heldout.", flag_values=FLAGS)
_LANE = flags.DEFINE_integer(
    "lane", 0, "Index of the lane.", lower_bound=0, upper_bound=_LARGEST, flag_values=FLAGS
)
_INDEX = flags.DEFINE_integer(
    "index",
    0,
    "Index of the window in its lane.",
    lower_bound=0,
    upper_bound=_LARGEST,
    flag_values=FLAGS,
)
_EPOCH = flags.DEFINE_integer(
    "epoch",
    0,
    "Epoch for which targets are sampled.",
    lower_bound=0,
    upper_bound=_LARGEST,
    flag_values=FLAGS,
)
_CONFIG = flags.DEFINE_string(
    "config",
    None,
    "Configuration for sampling targets: YAML file or model; default: that of the data set.",
    flag_values=FLAGS,
)
_OUTPUT = flags.DEFINE_string(
    "output", None, "Output file, .html; default: SPLIT-LANE-INDEX.html.", flag_values=FLAGS
)


@on_local_disk(FLAGS, reads=["config"], writes=["output"], reads_arguments=True)
def run(*arguments: str) -> dict[str, Any]:
    """Writes the page; returns its path and what the window holds."""
    from official.xlnet.analysis.record_windows import as_text, read_window
    from official.xlnet.analysis.window_page import as_html

    if len(arguments) != 1:
        raise flags.Error(
            f"expected one data set, `records DIR`, got {' '.join(arguments) or 'none'}"
        )
    default = f"{_SPLIT.value}-{_LANE.value}-{_INDEX.value}.html"
    path = check_ending(_OUTPUT.value or default, (".html",))
    window = read_window(
        arguments[0],
        load_config(_CONFIG.value) if _CONFIG.value else None,
        _SPLIT.value,
        _LANE.value,
        _INDEX.value,
        _EPOCH.value,
    )
    write(path, as_html(window).encode())
    print(as_text(window, color=sys.stdout.isatty()))
    return {
        "output": os.path.abspath(path),
        "window_id": window.window_id,
        "is_reversed": window.is_reversed,
        "is_next": window.is_next,
        "context_length": window.context_length,
        "targets": int(window.is_target.sum()),
    }
