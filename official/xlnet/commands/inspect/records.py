"""Shows a window of a data set: xlnet inspect records DIR.

Prints tokens, segments, direction, document boundaries, and the targets and factorization order
sampled in one epoch; writes an HTML page with the attention masks of the window.

Example:
  xlnet inspect records runs/data --index=3 --output=window.html
"""

from __future__ import annotations

import os
import sys
from typing import Any

from absl import flags

from official.xlnet.checkpoints.any_format import load_config
from official.xlnet.commands import flag_table, integer, string
from official.xlnet.configs.experiment import recipe_path
from official.xlnet.data.result_files import check_ending
from official.xlnet.files.atomic import write_bytes
from official.xlnet.files.staging import on_local_disk

TAKES_ARGUMENTS = True
FLAGS = flag_table(
    string("split", "train", "Split, train or heldout."),
    integer("lane", 0, "Index of the lane."),
    integer("index", 0, "Index of the window in its lane."),
    integer("epoch", 0, "Epoch for which targets are sampled."),
    string(
        "config",
        default=None,
        text="Configuration for sampling targets: YAML file or model; default: settings of the "
        "data set.",
    ),
    string("output", None, "Output file, .html; default: SPLIT-LANE-INDEX.html."),
)


@on_local_disk(FLAGS, reads=["config"], writes=["output"], reads_arguments=True)
def run(*arguments: str) -> dict[str, Any]:
    """Writes the page; returns its path and facts about the window."""
    from official.xlnet.analysis.record_windows import as_text, read_window
    from official.xlnet.analysis.window_page import as_html

    if len(arguments) != 1:
        raise flags.Error(
            f"expected one data set, `records DIR`, got {' '.join(arguments) or 'none'}"
        )
    path = FLAGS.output or f"{FLAGS.split}-{FLAGS.lane}-{FLAGS.index}.html"
    check_ending(path, (".html",))
    window = read_window(
        arguments[0],
        load_config(recipe_path(FLAGS.config)) if FLAGS.config else None,
        FLAGS.split,
        FLAGS.lane,
        FLAGS.index,
        FLAGS.epoch,
    )
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
