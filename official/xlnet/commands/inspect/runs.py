"""Plots the training curves of model directories: xlnet inspect runs DIR....

The training loss is shown per step and as a moving average.

Example:
  xlnet inspect runs runs/model --output=curves.png
"""

from __future__ import annotations

import os
from typing import Any

import pandas as pd
from absl import flags

from official.xlnet.commands import REQUIRED, flag_table, string
from official.xlnet.data.result_files import check_ending
from official.xlnet.errors import require_data
from official.xlnet.files.atomic import write_bytes
from official.xlnet.files.staging import on_local_disk
from official.xlnet.runtime.history import HISTORY_FILE, read_history
from official.xlnet.runtime.pictures import new_figure, png

TAKES_ARGUMENTS = True
FLAGS = flag_table(string("output", REQUIRED, "Output file, .png."))

_SMOOTHING = 50  # The moving average spans 1 / _SMOOTHING of a run.


@on_local_disk(FLAGS, writes=["output"], reads_arguments=True)
def run(*arguments: str) -> dict[str, Any]:
    """Writes the plot; returns its path and the number of runs."""
    if not arguments:
        raise flags.Error("expected model directories, `runs DIR...`, got none")
    check_ending(FLAGS.output, (".png",))
    figure = new_figure(8, 5)
    axes = figure.subplots()
    full = [os.path.abspath(directory) for directory in arguments]
    parent = os.path.commonpath(full) if len(full) > 1 else os.path.dirname(full[0])
    for number, directory in enumerate(full):
        history = read_history(directory)
        require_data(bool(history), directory, f"the {HISTORY_FILE} of a training run", "none")
        losses = pd.DataFrame(history).set_index("step")["loss"]
        smooth = losses.rolling(max(1, len(losses) // _SMOOTHING)).mean()
        axes.plot(losses, color=f"C{number}", alpha=0.15, linewidth=0.6)
        axes.plot(smooth, color=f"C{number}", label=os.path.relpath(directory, parent))
    axes.set(xlabel="step", ylabel="training loss, nats per target")
    axes.legend()
    write_bytes(FLAGS.output, png(figure, bbox_inches="tight"))
    return {"output": os.path.abspath(FLAGS.output), "runs": len(arguments)}
