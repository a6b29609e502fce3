"""Readers of multiple-choice data: RACE folders, SWAG CSV files and JSON lines.

A JSON line has the keys `texts` (or `text`), `choices`, and `label`, the index of the correct
choice.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

from data_prep.tasks.rows import Row, WrongRowError, listed, renamed, row_id, text, texts, usable
from data_prep.tasks.table import read_rows
from official.xlnet.data.reading import Reading, register_reader
from official.xlnet.errors import DataError, require_data
from official.xlnet.files.json_files import read_json
from official.xlnet.files.schema import conform, shown
from official.xlnet.tasks.labels import meaning
from official.xlnet.tasks.multiple_choice import ChoiceExample

_LETTERS = "ABCDEFGH"  # Answers of RACE.
_TEXTS = ("text", "passage", "question")
_ENDING = re.compile(r"ending[0-9]{1,3}")


@register_reader("multiple_choice", folder=True)
def read_race(reading: Reading) -> Iterator[ChoiceExample]:
    """Reads a RACE folder such as `RACE/train`, with the subfolders `middle` and `high`.

    Each file is a JSON object with `article`, `questions`, `options` and `answers` (letters).

    Args:
      reading: the folder and reading options.

    Yields:
      One example per question.

    Raises:
      DataError: the folder has no files, or a file is invalid in strict mode.
    """
    paths = []
    for folder, _, names in os.walk(reading.path):
        for name in names:
            is_hidden = name.startswith(".") or os.path.basename(folder).startswith(".")
            if name.lower().endswith((".txt", ".json")) and not is_hidden:
                paths.append(os.path.join(folder, name))
    require_data(bool(paths), reading.path, "passage files of RACE", "none")
    for path in sorted(paths):
        group = os.path.basename(os.path.dirname(path))
        try:
            tree = conform(read_json(path), dict[str, Any], path)
            article = conform(tree.get("article"), str, path)
            questions = conform(tree.get("questions"), list[str], path)
            choices = conform(tree.get("options"), list[list[str]], path)
            answers = conform(tree.get("answers") or [], list[str], path)
            has_answers = reading.with_labels and bool(answers)
            known_answers = answers if has_answers else [None] * len(questions)
            rows = list(zip(questions, choices, known_answers, strict=True))
        except ValueError as error:  # A DataError, too.
            reading.reject("malformed_files", f"{path}: expected a RACE passage: {error}")
            continue
        for index, (question, options, answer) in enumerate(rows):
            letters = _LETTERS[: len(options)]
            if reading.with_labels and (not answer or len(answer) != 1 or answer not in letters):
                reading.reject(
                    "wrong_answers" if answer else "missing_labels",
                    f"{path}, question {index}: expected one of {letters}, got {shown(answer)}",
                )
                continue
            file_name = os.path.splitext(os.path.basename(path))[0]
            yield ChoiceExample(
                id=f"{group}/{file_name}/{index}",
                texts=(article, question),
                choices=tuple(options),
                label=None if answer is None else letters.index(answer),
                group=group,
            )


@register_reader("multiple_choice")
def read_choices(reading: Reading) -> Iterator[ChoiceExample]:
    """Reads SWAG CSV files (`sent1`, `sent2`, `ending0` …, `label`) or JSON lines.

    Args:
      reading: the file and reading options.

    Yields:
      One example per row.

    Raises:
      DataError: a column is missing, or a row is invalid in strict mode.
    """
    chosen_columns = reading.settings.text_columns

    def example_of(row: Row, row_number: int) -> ChoiceExample:
        row = renamed(reading, row, chosen_columns, "label")
        if "choices" in row:
            passage = _texts_before_choices(row, chosen_columns)
            choices = texts(row, "choices")
        elif "ending0" in row and "sent1" in row:
            endings = sorted(filter(_ENDING.fullmatch, row), key=lambda c: int(c[len("ending") :]))
            start = text({"sent2": "", **row}, "sent2")
            passage = [text(row, "sent1")]
            choices = [f"{start} {text(row, column)}".strip() for column in endings]
        else:
            raise DataError(
                f"{reading.path}, row {row_number}: expected `choices`, or SWAG's `sent1` and "
                f"`ending0`, got {listed(row)}"
            )
        label = row.get("label")
        if reading.with_labels and label in (None, ""):
            raise WrongRowError("expected a label, got none", "missing_labels")
        index = meaning(str(label))
        if reading.with_labels and index not in map(str, range(len(choices))):
            raise WrongRowError(
                f"expected a label from 0 to {len(choices) - 1}, got {shown(label)}",
                "wrong_answers",
            )
        return ChoiceExample(
            id=row_id(row, "id", row_number),
            texts=tuple(passage),
            choices=tuple(choices),
            label=int(index) if reading.with_labels else None,
        )

    return usable(reading, read_rows(reading), example_of)


def _texts_before_choices(row: Row, chosen_columns: Sequence[str]) -> list[str]:
    """The texts of a row with a column `choices`; an empty one if it has none."""
    names = chosen_columns
    if not names:
        names = ["texts"] if row.get("texts") else [name for name in _TEXTS if row.get(name)]
    if not names and not row.keys() <= {*_TEXTS, "texts", "choices", "label", "id"}:
        raise WrongRowError(f"expected a column texts, or {', '.join(_TEXTS)}, got {listed(row)}")
    passage: list[str] = []
    for name in names:
        if isinstance(row[name], list):
            passage += texts(row, name)
        else:
            passage.append(text(row, name))
    return passage or [""]
