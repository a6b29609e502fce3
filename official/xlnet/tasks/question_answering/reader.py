"""Reader of SQuAD 1.1 and 2.0: JSON files, and tables with a question in each row, as HF has it.

A table has the columns `id`, `question`, `context` and `answers`, whose value is a list of objects
or an object of lists, with `text` and `answer_start`. A `.json` file is
`{"data": [{"paragraphs": [{"context": …, "qas": […]}]}]}`.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from functools import partial
from typing import Any

from data_prep.tasks.rows import Row, WrongRowError, renamed, row_id, usable
from data_prep.tasks.table import is_table, read_rows
from official.xlnet.data.reading import Reading, register_reader
from official.xlnet.errors import DataError, require_data
from official.xlnet.files.json_files import read_json
from official.xlnet.files.schema import conform, shown
from official.xlnet.tasks.question_answering import QuestionExample

_FORM = '{"data": [{"paragraphs": [{"context": "…", "qas": […]}]}]}'
# Characters that no predicted answer begins or ends with: spaces of all kinds, the byte order mark,
# and characters of zero width.
_EDGE = r"[\s\ufeff\u2060\u200b-\u200f]*"
_WITH_EDGES = re.compile(f"{_EDGE}(.*?){_EDGE}", re.DOTALL)


@register_reader("question_answering_simple")
@register_reader("question_answering")
def read_squad(reading: Reading) -> Iterator[QuestionExample]:
    """Reads questions; rejects those whose answer does not occur at the given offset.

    Spaces and invisible characters at the ends of an answer are left out, and counted.

    Args:
      reading: the file and reading options.

    Yields:
      One example per question.

    Raises:
      DataError: the file is not valid SQuAD JSON, two questions have the same id, or a question is
        invalid in strict mode.
    """
    rows = read_rows(reading) if is_table(reading) else _questions(reading)
    known_ids: set[str] = set()
    for example in usable(reading, rows, partial(_example, reading)):
        where = f"{reading.path}: question {example.id}"
        is_new = example.id not in known_ids
        require_data(is_new, where, "an id of its own", "that of another question")
        known_ids.add(example.id)
        if not example.question.strip() or not example.context.strip():
            reading.reject("empty", f"{where} has no text")
            continue
        error = _error_in_answers(example)
        if error:
            reading.reject("answers_not_in_paragraph", f"{where}: {error}")
            continue
        answers = tuple(without_edges(text, start) for text, start in example.answers)
        if answers != example.answers:
            reading.counts["answers_stripped"] += 1
        yield dataclasses.replace(example, answers=answers)


def _questions(reading: Reading) -> list[Row]:
    """The questions of a file of SQuAD, as rows of a table."""
    path, objects = reading.path, list[dict[str, Any]]
    try:
        rows = []
        tree = conform(read_json(path), dict[str, Any], path)
        for article in conform(tree.get("data"), objects, f"{path}: data"):
            for paragraph in conform(article.get("paragraphs"), objects, f"{path}: paragraphs"):
                for question in conform(paragraph.get("qas"), objects, f"{path}: qas"):
                    rows.append({**question, "context": paragraph.get("context")})
        return rows
    except DataError as error:
        raise DataError(
            f"{path}: expected SQuAD's JSON, one object of the form {_FORM}, with an article and a "
            f"paragraph for each row of a flat file: {error}"
        ) from None


def _example(reading: Reading, row: Row, row_number: int) -> QuestionExample:
    """The question of a row."""
    row = renamed(reading, row, ["question", "context"], "answers")
    where = f"question {shown(row.get('id'))}"
    answers = row.get("answers") if reading.with_labels else None
    has_label = answers is not None
    if reading.with_labels and not has_label:
        raise WrongRowError(f"{where}: expected answers, got none", "missing_labels")
    try:
        if isinstance(answers, dict):  # As in HF's data sets.
            pairs = list(zip(answers["text"], answers["answer_start"], strict=True))
        else:
            answers = conform(answers if has_label else [], list[dict[str, Any]], "answers")
            pairs = [(answer.get("text"), answer.get("answer_start")) for answer in answers]
        is_impossible = conform(row.get("is_impossible", not pairs), bool, "is_impossible")
        example = QuestionExample(
            id=row_id(row, "id", row_number),
            question=conform(row.get("question"), str, "question"),
            context=conform(row.get("context"), str, "context"),
            answers=tuple(
                (conform(text, str, "text"), conform(start, int, "answer_start"))
                for text, start in pairs
            ),
            has_label=has_label,
        )
    except (KeyError, TypeError, ValueError) as error:  # A DataError, too.
        raise WrongRowError(f"{where}: {error}") from None
    if has_label and is_impossible == bool(pairs):
        raise WrongRowError(
            f"{where}: expected answers unless is_impossible is true, got {len(pairs)} and "
            f"is_impossible {str(is_impossible).lower()}",
            "contradictory_answers",
        )
    return example


def _error_in_answers(example: QuestionExample) -> str:
    """Describes the first answer that the paragraph does not have; empty if it has all."""
    for text, start in example.answers:
        first = max(start, 0)
        text_there = example.context[first : first + len(text)]
        visible_text, _ = without_edges(text, start)
        if not visible_text or start < 0 or text_there != text:
            return f"expected the answer {text!r} at {start}, got {text_there!r}"
    return ""


def without_edges(text: str, start: int) -> tuple[str, int]:
    r"""Returns an answer without the spaces and invisible characters at its ends.

    Args:
      text: the answer.
      start: its offset in the paragraph.

    Example:
      >>> without_edges(" the water\xa0", 7)
      ('the water', 8)
    """
    match = _WITH_EDGES.fullmatch(text)
    assert match is not None
    return match[1], start + match.start(1)
