"""Which reader reads which kind of task data."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

from data_prep.tasks import choices, folders, ranking, squad, tables, tagged
from data_prep.tasks.reading import Reading
from official.xlnet.data.examples import Example
from official.xlnet.errors import DataError


def read_examples(reading: Reading) -> Iterator[Example]:
    """Yields the examples of a file or a folder.

    Raises:
      DataError: nothing is there, or it is not what the task reads.
    """
    path, kind = reading.path, reading.settings.name
    if not path.startswith("tfds:") and not os.path.exists(path):
        raise DataError(f"no data at {path!r}: expected a file or a folder")
    is_folder = os.path.isdir(path)
    readers: dict[str, Callable[..., Iterator[Any]]] = {
        "classification": folders.read_folder if is_folder else tables.read_texts,
        "multi_label": tables.read_texts,
        "regression": tables.read_texts,
        "multiple_choice": choices.read_race if is_folder else choices.read_choices,
        "question_answering": squad.read_squad,
        "token_classification": tagged.read_conll,
        "ranking": ranking.read_trec if is_folder else ranking.read_ranking,
    }
    if is_folder and kind not in ("classification", "multiple_choice", "ranking"):
        raise DataError(f"{path}: expected a file for {kind}, got a folder")
    return readers[kind](reading)
