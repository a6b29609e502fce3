"""Shows the attention maps of a text: an interactive page or an image.

Also lists the heads with the attention patterns of figures 2 and 3 of the paper.
"""

from __future__ import annotations

import os
from typing import Any

from absl import flags

from official.xlnet.checkpoints.any_format import load_config
from official.xlnet.commands.inspect import check_ending, write
from official.xlnet.files.staging import on_local_disk

FLAGS = flags.FlagValues()
_MODEL = flags.DEFINE_string("model", None, "Model directory.", required=True, flag_values=FLAGS)
_TEXT = flags.DEFINE_string("text", None, "Input text.", required=True, flag_values=FLAGS)
_TEXT_PAIR = flags.DEFINE_string(
    "text_pair", None, "Second text, a segment of its own.", flag_values=FLAGS
)
_LAYERS = flags.DEFINE_list("layers", [], "Indices of layers; default: all.", flag_values=FLAGS)
_HEADS = flags.DEFINE_list("heads", [], "Indices of heads; default: all.", flag_values=FLAGS)
_MAX_TOKENS = flags.DEFINE_integer(
    "max_tokens",
    128,
    "Maximum number of tokens; longer texts are truncated.",
    lower_bound=1,
    upper_bound=4096,
    flag_values=FLAGS,
)
_OUTPUT = flags.DEFINE_string(
    "output", None, "Output file, .html or .png.", required=True, flag_values=FLAGS
)


@on_local_disk(FLAGS, reads=["model"], writes=["output"])
def run() -> dict[str, Any]:
    """Writes the maps; returns the path, and the heads with each pattern."""
    from official.xlnet.analysis.attention_maps import attention_maps
    from official.xlnet.analysis.attention_page import as_html, as_png
    from official.xlnet.analysis.attention_patterns import find_patterns

    path = check_ending(_OUTPUT.value, (".html", ".png"))
    model = load_config(_MODEL.value).model
    layers = _numbers(_LAYERS, model.num_layers)
    heads = _numbers(_HEADS, model.num_heads)
    maps = attention_maps(_MODEL.value, _TEXT.value, _MAX_TOKENS.value, _TEXT_PAIR.value)
    if path.endswith(".html"):
        write(path, as_html(maps, layers, heads).encode())
    else:
        write(path, as_png(maps, layers, heads))
    return {
        "output": os.path.abspath(path),
        "tokens": len(maps.pieces),
        "patterns": {
            found.pattern: {
                "layer": found.layer,
                "head": found.head,
                "strength": round(found.strength, 3),
                "heads": found.num_heads,
            }
            for found in find_patterns(maps.weights)
        },
    }


def _numbers(flag: flags.FlagHolder, limit: int) -> list[int]:
    """The numbers of a list flag, from 0 to limit - 1; all of them by default."""
    numbers = [int(text) if text.isdecimal() else -1 for text in flag.value]
    if any(not 0 <= number < limit for number in numbers):
        given = ",".join(flag.value)
        raise flags.Error(f"--{flag.name}: expected integers from 0 to {limit - 1}, got {given}")
    return numbers or list(range(limit))
