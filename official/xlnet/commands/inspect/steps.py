"""Shows how many steps each token of a text takes in a model of adaptive depth, as an image.

Example:
  xlnet inspect steps --model=runs/model --text='The cat sat.' --output=steps.png
"""

from __future__ import annotations

import os
from typing import Any

from official.xlnet.commands import INSPECTED_TEXT, MODEL, REQUIRED, flag_table, string
from official.xlnet.data.result_files import check_ending
from official.xlnet.files.atomic import write_bytes
from official.xlnet.files.staging import on_local_disk

FLAGS = flag_table(MODEL, INSPECTED_TEXT, string("output", REQUIRED, "Output file, .png."))


@on_local_disk(FLAGS, reads=["model"], writes=["output"])
def run() -> dict[str, Any]:
    """Writes the picture; returns its path and the mean number of steps."""
    from official.xlnet.analysis.attention_maps import token_steps
    from official.xlnet.runtime.pictures import png

    check_ending(FLAGS.output, (".png",))
    steps = token_steps(FLAGS.model, FLAGS.text, FLAGS.max_tokens, FLAGS.text_pair)
    write_bytes(FLAGS.output, png(steps.plot()))
    return {
        "output": os.path.abspath(FLAGS.output),
        "tokens": len(steps.pieces),
        "mean_steps": round(float(steps.num_steps.mean()), 3),
        "most_steps": int(steps.num_steps.max()),
        "layers": steps.most,
    }
