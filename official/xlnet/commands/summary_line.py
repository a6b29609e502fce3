"""The line for people before the JSON object of a command: `done: 12 documents, 96 windows`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from official.xlnet.api.verbs import USUAL_COUNTS
from official.xlnet.files.arguments import STANDARD

_PLURAL = r"s(?= |$)"  # At the end of a word.
_MEASURES = ("loss", "perplexity", "accuracy", "mean")  # Those of a result that are numbers.


def summary_line(
    result: Any, arguments: Mapping[str, Any], counts_of_verb: Mapping[str, str] | None = None
) -> str:
    """Returns the line about what a verb has done; empty if its result has no counts.

    Args:
      result: what its function has returned.
      arguments: {parameter: value}, of which `output` is the place of the output.
      counts_of_verb: {key of its result: what it counts}, besides the usual ones.

    Example:
      >>> summary_line({"documents": 1832, "windows": 2400}, {"output": "runs/data"})
      'done: 1,832 documents, 2,400 windows, in runs/data'
    """
    if not isinstance(result, Mapping):
        return ""
    counts: dict[str, int] = {}
    for key, noun in {**USUAL_COUNTS, **(counts_of_verb or {})}.items():
        count = result.get(key)
        if isinstance(count, int) and not isinstance(count, bool) and count:
            counts.setdefault(noun, count)
    parts = []
    for noun, count in counts.items():
        counted = noun if count != 1 else re.sub(_PLURAL, "", noun)
        parts.append(f"{count:,} {counted}")
    for key in _MEASURES:
        if isinstance(result.get(key), float):
            parts.append(f"{key} {result[key]:.4g}")
    if not parts:
        return ""
    output = arguments.get("output")
    place = [f"in {output}"] if output and output != STANDARD else []
    return f"done: {', '.join(parts + place)}"
