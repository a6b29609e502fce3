"""Shows how many steps each token of a text takes in a model of adaptive depth, as an image."""

from __future__ import annotations

import os
from typing import Any

from absl import flags

from official.xlnet.commands.inspect import check_ending, write
from official.xlnet.files.staging import on_local_disk

FLAGS = flags.FlagValues()
_MODEL = flags.DEFINE_string("model", None, "Model directory.", required=True, flag_values=FLAGS)
_TEXT = flags.DEFINE_string("text", None, "Input text.", required=True, flag_values=FLAGS)
_TEXT_PAIR = flags.DEFINE_string(
    "text_pair", None, "Second text, a segment of its own.", flag_values=FLAGS
)
_MAX_TOKENS = flags.DEFINE_integer(
    "max_tokens",
    128,
    "Maximum number of tokens; longer texts are truncated.",
    lower_bound=1,
    upper_bound=4096,
    flag_values=FLAGS,
)
_OUTPUT = flags.DEFINE_string(
    "output", None, "Output file, .png.", required=True, flag_values=FLAGS
)


@on_local_disk(FLAGS, reads=["model"], writes=["output"])
def run() -> dict[str, Any]:
    """Writes the picture; returns its path and the mean number of steps."""
    from official.xlnet.analysis.token_steps import as_png, token_steps

    path = check_ending(_OUTPUT.value, (".png",))
    steps = token_steps(_MODEL.value, _TEXT.value, _MAX_TOKENS.value, _TEXT_PAIR.value)
    write(path, as_png(steps))
    return {
        "output": os.path.abspath(path),
        "tokens": len(steps.pieces),
        "mean_steps": round(float(steps.num_steps.mean()), 3),
        "most_steps": int(steps.num_steps.max()),
        "layers": steps.most,
    }
