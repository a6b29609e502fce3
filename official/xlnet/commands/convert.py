"""Converts models between our format, Hugging Face (HF) and the TF1 release.

The format of the source is detected from its files: xlnet_config.json (TF1 release), config.json
(HF) or config.yaml (our model directory).

Example:
  xlnet convert --source=runs/model --output=runs/hf --to=hf
"""

from __future__ import annotations

from typing import Any

from official.xlnet.commands import REQUIRED, SET, choice, flag_table, string
from official.xlnet.configs.choices import CHECKPOINT_FORMS
from official.xlnet.files.staging import on_local_disk

FLAGS = flag_table(
    string("source", REQUIRED, "Directory of the model to convert."),
    string("output", REQUIRED, "Output directory; must not exist or be empty."),
    choice("to", "xlnet", CHECKPOINT_FORMS, "Output format."),
    SET,
)


@on_local_disk(FLAGS, reads=["source"], writes_directory=["output"])
def run() -> dict[str, Any]:
    """Runs the conversion; returns the report of `official.xlnet.checkpoints.convert.convert`."""
    from official.xlnet.checkpoints.convert import convert

    return convert(FLAGS.source, FLAGS.output, FLAGS.to, FLAGS.set)
