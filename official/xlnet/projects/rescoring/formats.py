"""Files of hypotheses: lines of an id and words, as Kaldi has them, and JSON lines of lists."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from official.xlnet.configs.registry import TEXT_ROW_FORMATS
from official.xlnet.configs.task import TaskConfig
from official.xlnet.data.reading import Reading
from official.xlnet.errors import require_data
from official.xlnet.files.schema import shown
from official.xlnet.files.text import open_text


@TEXT_ROW_FORMATS.register("kaldi")
def kaldi_rows(path: str) -> Iterator[dict[str, Any]]:
    """Yields a row for each line of an id and words.

    Args:
      path: the file.

    Raises:
      DataError: a line is blank.
    """
    with open_text(path) as file:
        for line_number, line in enumerate(file, start=1):
            parts = line.split(maxsplit=1)
            require_data(
                bool(parts), f"{path}, line {line_number}", "an id and words", "a blank line"
            )
            words = parts[1] if len(parts) > 1 else ""
            yield {"id": parts[0], "text": words.rstrip()}


@TEXT_ROW_FORMATS.register("nbest")
def nbest_rows(path: str) -> Iterator[dict[str, Any]]:
    """Yields a row for each hypothesis in the lists `hyps` of JSON lines.

    It has the number of its line as `utterance`, the other values of the line, and its own.

    Args:
      path: the file.

    Raises:
      DataError: a line has no list `hyps` of objects with a `text`, or has a key of its objects
        or `utterance`, too.
    """
    from data_prep.tasks.json_files import json_rows

    reading = Reading(path, TaskConfig(), strict=True, with_labels=False)
    for line_number, row in enumerate(json_rows(reading), start=1):
        hyps = row.pop("hyps", None)
        expected = "a list 'hyps' of objects with a string 'text'"
        require_data(_are_hypotheses(hyps), f"{path}, row {line_number}", expected, shown(hyps))
        for hypothesis in hyps:
            repeated = {"utterance"} & (row.keys() | hypothesis.keys())
            repeated |= row.keys() & hypothesis.keys()
            require_data(
                not repeated,
                f"{path}, row {line_number}",
                "other keys beside 'hyps' than in its objects, and none named 'utterance'",
                f"{', '.join(sorted(repeated))}; rename them",
            )
            yield {"utterance": line_number, **row, **hypothesis}


def _are_hypotheses(values: Any) -> bool:
    """Whether a value is a list, which is not empty, of objects with a `text`."""
    if not isinstance(values, list) or not values:
        return False
    return all(isinstance(x, dict) and isinstance(x.get("text"), str) for x in values)
