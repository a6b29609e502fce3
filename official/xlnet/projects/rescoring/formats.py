"""Files of hypotheses: lines of an id and words, as Kaldi has them, and JSON lines of lists."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from official.xlnet.configs.registry import TEXT_ROW_FORMATS
from official.xlnet.configs.task import TaskConfig
from official.xlnet.data.reading import Reading
from official.xlnet.errors import require_data
from official.xlnet.files.schema import shown
from official.xlnet.files.text import open_text

_SPACE = " \t\n\r\f\v"  # As Kaldi has it; others, such as U+3000, may be part of an id.


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
            name, *words = re.split(f"[{_SPACE}]+", line.strip(_SPACE), maxsplit=1)
            require_data(
                bool(name), f"{path}, line {line_number}", "an id and words", "a blank line"
            )
            yield {"id": name, "text": words[0] if words else ""}


@TEXT_ROW_FORMATS.register("nbest")
def nbest_rows(path: str) -> Iterator[dict[str, Any]]:
    """Yields a row for each hypothesis in the lists `hyps` of JSON lines.

    It has the number of its line as `utterance`, the other values of the line, and its own. An
    empty list, of silence, has none.

    Args:
      path: the file.

    Raises:
      DataError: a line has no list `hyps` of objects with a `text`, or has a key of its objects
        or `utterance`, too.
    """
    for line_number, row, hyps in _lists(path):
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


def empty_lists(path: str) -> dict[int, dict[str, Any]]:
    """Returns the lines of an n-best file whose list is empty: {utterance: its other values}.

    Args:
      path: the file.

    Raises:
      DataError: a line has no list `hyps` of objects with a `text`.
    """
    return {
        line_number: {"utterance": line_number, **row}
        for line_number, row, hyps in _lists(path)
        if not hyps
    }


def _lists(path: str) -> Iterator[tuple[int, dict[str, Any], list[dict[str, Any]]]]:
    """Yields the number of each line, its values but `hyps`, and these."""
    from data_prep.tasks.json_files import json_rows

    reading = Reading(path, TaskConfig(), strict=True, with_labels=False)
    for line_number, row in enumerate(json_rows(reading), start=1):
        hyps = row.pop("hyps", None)
        expected = "a list 'hyps' of objects with a string 'text'"
        require_data(_are_hypotheses(hyps), f"{path}, row {line_number}", expected, shown(hyps))
        yield line_number, row, hyps


def _are_hypotheses(values: Any) -> bool:
    """Whether a value is a list of objects with a `text`."""
    if not isinstance(values, list):
        return False
    return all(isinstance(x, dict) and isinstance(x.get("text"), str) for x in values)
