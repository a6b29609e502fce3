"""Converts models between the TF1 release's form, HF's and ours.

The source's form is recognised by its files: xlnet_config.json (TF1 release), config.json (HF)
or config.yaml (a model directory of ours).
"""

from __future__ import annotations

from typing import Any

from absl import flags

from official.xlnet.checkpoints.convert import FORMS, convert

FLAGS = flags.FlagValues()
_SOURCE = flags.DEFINE_string(
    "source", None, "Folder of the model.", required=True, flag_values=FLAGS
)
_OUTPUT = flags.DEFINE_string("output", None, "New folder.", required=True, flag_values=FLAGS)
_TO = flags.DEFINE_enum("to", "xlnet", FORMS, "Form of the new folder.", flag_values=FLAGS)
_SET = flags.DEFINE_multi_string(
    "set", [], "key=value: overrides a key of the configuration.", flag_values=FLAGS
)


def run() -> dict[str, Any]:
    """Returns `variables`, `parameters`, `left_over` and `not_filled`."""
    return convert(_SOURCE.value, _OUTPUT.value, _TO.value, _SET.value)
