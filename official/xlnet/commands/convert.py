"""Converts models between our format, Hugging Face (HF) and the TF1 release.

The format of the source is detected from its files: xlnet_config.json (TF1 release), config.json
(HF) or config.yaml (our model directory).
"""

from __future__ import annotations

from typing import Any

from absl import flags

from official.xlnet.configs.choices import CHECKPOINT_FORMS
from official.xlnet.files.staging import on_local_disk

FLAGS = flags.FlagValues()
_SOURCE = flags.DEFINE_string(
    "source", None, "Directory of the model to convert.", required=True, flag_values=FLAGS
)
_OUTPUT = flags.DEFINE_string(
    "output",
    None,
    "Output directory; must not exist or be empty.",
    required=True,
    flag_values=FLAGS,
)
_TO = flags.DEFINE_enum("to", "xlnet", CHECKPOINT_FORMS, "Output format.", flag_values=FLAGS)
_SET = flags.DEFINE_multi_string(
    "set", [], "Configuration override key=value; may be repeated.", flag_values=FLAGS
)


@on_local_disk(FLAGS, reads=["source"], writes_directory=["output"])
def run() -> dict[str, Any]:
    """Runs the conversion; returns the report of `official.xlnet.checkpoints.convert.convert`."""
    from official.xlnet.checkpoints.convert import convert

    return convert(_SOURCE.value, _OUTPUT.value, _TO.value, _SET.value)
