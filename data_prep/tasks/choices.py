"""Readers of multiple-choice data: RACE folders, SWAG CSV files and JSON lines.

A JSON line has the keys `texts` (or `text`), `choices`, and `label`, the index of the correct
choice.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

from data_prep.tasks.tables import read_rows
from official.xlnet.data.examples import ChoiceExample
from official.xlnet.data.reading import Reading, register_reader
from official.xlnet.errors import DataError

_LETTERS = "ABCDEFGH"  # Answers of RACE.


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
    paths = sorted(
        os.path.join(folder, name)
        for folder, _, names in os.walk(reading.path)
        for name in names
        if name.endswith((".txt", ".json"))
    )
    if not paths:
        raise DataError(f"{reading.path}: expected passage files of RACE, got none")
    for path in paths:
        group = os.path.basename(os.path.dirname(path))
        try:
            with open(path, encoding="utf-8") as file:
                tree = json.load(file)
            answers = tree.get("answers") if reading.with_labels else None
            answers = answers or [None] * len(tree["questions"])
            rows = list(zip(tree["questions"], tree["options"], answers, strict=True))
            article = tree["article"]
        except (ValueError, KeyError, AttributeError, TypeError) as error:
            reading.reject("malformed_files", f"{path}: expected a RACE passage: {error!r}")
            continue
        for number, (question, options, answer) in enumerate(rows):
            label = None if answer is None else _LETTERS.find(answer)
            if label is not None and not 0 <= label < len(options):
                reading.reject(
                    "wrong_answers",
                    f"{path}, question {number}: expected one of {_LETTERS[: len(options)]}, "
                    f"got {answer!r}",
                )
                continue
            yield ChoiceExample(
                f"{group}/{os.path.basename(path).partition('.')[0]}/{number}",
                (article, question),
                tuple(options),
                label,
                group,
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
    for number, row in enumerate(read_rows(reading), start=1):
        where = f"{reading.path}, row {number}"
        if "choices" in row:
            texts = row.get("texts") or [row.get("text", "")]
            choices = [str(choice) for choice in row["choices"]]
        elif "ending0" in row and "sent1" in row:
            endings = sorted(column for column in row if column.startswith("ending"))
            start = row.get("sent2", "")
            texts = [row["sent1"]]
            choices = [f"{start} {row[column]}".strip() for column in endings]
        else:
            raise DataError(
                f"{where}: expected `choices`, or SWAG's `sent1` and `ending0`, got "
                + ", ".join(row)
            )
        label = row.get("label") if reading.with_labels else None
        if label in (None, ""):
            label = None
        elif not str(label).isdigit() or int(label) >= len(choices):
            reading.reject(
                "wrong_answers",
                f"{where}: expected a label from 0 to {len(choices) - 1}, got {label!r}",
            )
            continue
        yield ChoiceExample(
            str(row.get("id") or number),
            tuple(map(str, texts)),
            tuple(choices),
            None if label is None else int(label),
        )
