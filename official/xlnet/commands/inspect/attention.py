"""Shows the attention maps of a text: an interactive page or an image.

Also lists the heads with the attention patterns of figures 2 and 3 of the paper.

Example:
  xlnet inspect attention --model=runs/model --text='The cat sat.' --output=maps.html
"""

from __future__ import annotations

import os
from typing import Any

from official.xlnet.checkpoints.any_format import load_config
from official.xlnet.commands import INSPECTED_TEXT, MODEL, REQUIRED, comma_list, flag_table, string
from official.xlnet.data.result_files import check_ending
from official.xlnet.errors import require_config
from official.xlnet.files.atomic import write_bytes
from official.xlnet.files.staging import on_local_disk

FLAGS = flag_table(
    MODEL,
    INSPECTED_TEXT,
    comma_list("layers", [], "Indices of layers; default: all."),
    comma_list("heads", [], "Indices of heads; default: all."),
    string("output", REQUIRED, "Output file, .html or .png."),
)


@on_local_disk(FLAGS, reads=["model"], writes=["output"])
def run() -> dict[str, Any]:
    """Writes the maps; returns the path, and the heads with each pattern."""
    from official.xlnet.analysis.attention_maps import attention_maps
    from official.xlnet.analysis.attention_page import as_html
    from official.xlnet.analysis.attention_patterns import find_patterns
    from official.xlnet.runtime.pictures import png

    ending = check_ending(FLAGS.output, (".html", ".png"))
    model = load_config(FLAGS.model).model
    layers = _numbers("layers", model.num_layers)
    heads = _numbers("heads", model.num_heads)
    maps = attention_maps(FLAGS.model, FLAGS.text, FLAGS.max_tokens, FLAGS.text_pair)
    is_page = ending == ".html"
    page = as_html(maps, layers, heads).encode() if is_page else png(maps.plot(layers, heads))
    write_bytes(FLAGS.output, page)
    return {
        "output": os.path.abspath(FLAGS.output),
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


def _numbers(name: str, limit: int) -> list[int]:
    """The numbers of a list flag, from 0 to limit - 1; all of them by default."""
    given = FLAGS[name].value
    numbers = [int(text) if text.isdecimal() else -1 for text in given]
    is_inside = all(0 <= number < limit for number in numbers)
    require_config(is_inside, f"--{name}", f"integers from 0 to {limit - 1}", ",".join(given))
    return numbers or list(range(limit))
