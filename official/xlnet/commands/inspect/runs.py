"""Plots the training curves of model directories: xlnet inspect runs DIR....

Example:
  xlnet inspect runs runs/model --output=curves.png
"""

from __future__ import annotations

import os
from typing import Any

from absl import flags

from official.xlnet.commands import REQUIRED, flag_table, string
from official.xlnet.commands.inspect import check_ending
from official.xlnet.files.atomic import write_bytes
from official.xlnet.files.staging import on_local_disk

TAKES_ARGUMENTS = True
FLAGS = flag_table(string("output", REQUIRED, "Output file, .png."))


@on_local_disk(FLAGS, writes=["output"], reads_arguments=True)
def run(*arguments: str) -> dict[str, Any]:
    """Writes the plot; returns its path and the number of runs."""
    from official.xlnet.analysis.training_curves import training_curves

    if not arguments:
        raise flags.Error("expected model directories, `runs DIR...`, got none")
    path = check_ending(FLAGS.output, (".png",))
    write_bytes(path, training_curves(list(arguments)))
    return {"output": os.path.abspath(path), "runs": len(arguments)}
