"""Reader of SQuAD 1.1 and 2.0: JSON files, and tables with a question in each row, as HF has it.

A table has the columns `id`, `question`, `context` and `answers`, whose value is a list of objects
or an object of lists, with `text` and `answer_start`. A `.json` file is
`{"data": [{"paragraphs": [{"context": …, "qas": […]}]}]}`.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from typing import Any

from data_prep.tasks.rows import WrongRowError, renamed, row_id
from data_prep.tasks.table import is_table, read_rows
from official.xlnet.data.reading import Reading, register_reader
from official.xlnet.errors import DataError, require_data
from official.xlnet.files.json_files import read_json
from official.xlnet.files.schema import conform, shown
from official.xlnet.tasks.question_answering import QuestionExample

_FORM = '{"data": [{"paragraphs": [{"context": "…", "qas": […]}]}]}'
# An answer with what no prediction begins or ends with: spaces of all kinds, the byte order mark,
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
    questions = _rows(reading) if is_table(reading) else _questions(reading)
    seen: set[str] = set()
    for example, is_impossible in questions:
        where = f"{reading.path}: question {example.id}"
        require_data(example.id not in seen, where, "an id of its own", "that of another question")
        seen.add(example.id)
        if not example.question.strip() or not example.context.strip():
            reading.reject("empty", f"{where} has no text")
        elif reading.with_labels and not example.has_label:
            reading.reject("missing_labels", f"{where}: expected answers, got none")
        elif example.has_label and is_impossible == bool(example.answers):
            reading.reject(
                "contradictory_answers",
                f"{where}: expected answers unless is_impossible is true, got "
                f"{len(example.answers)} and is_impossible {str(is_impossible).lower()}",
            )
        elif wrong := _wrong(example):
            reading.reject("answers_not_in_paragraph", f"{where}: {wrong}")
        else:
            answers = tuple(without_edges(*answer) for answer in example.answers)
            if answers != example.answers:
                reading.counts["answers_stripped"] += 1
            yield dataclasses.replace(example, answers=answers)


def _rows(reading: Reading) -> Iterator[tuple[QuestionExample, bool]]:
    """The questions of a table."""
    for number, row in enumerate(read_rows(reading), start=1):
        if isinstance(row, QuestionExample):
            yield row, row.has_label and not row.answers
            continue
        where = f"{reading.path}, row {number}"
        try:
            row = renamed(reading, row, ["question", "context"], "answers")
            answers = row.get("answers")
            if isinstance(answers, dict):
                pairs = zip(answers["text"], answers["answer_start"], strict=True)
                answers = [{"text": text, "answer_start": start} for text, start in pairs]
            qa = {**row, "id": row_id(row, "id", number), "answers": answers}
            if answers is None:
                del qa["answers"]
            found = _example(reading, qa, conform(row.get("context"), str, f"{where}: context"))
        except (WrongRowError, KeyError, TypeError, ValueError) as error:  # A DataError, too.
            reading.reject("malformed_rows", f"{where}: expected a question: {error}")
            continue
        yield found


def _questions(reading: Reading) -> list[tuple[QuestionExample, bool]]:
    """The questions of a file of SQuAD."""
    path = reading.path
    try:
        tree = conform(read_json(path), dict[str, Any], path)
        articles = conform(tree.get("data"), list[dict[str, Any]], f"{path}: data")
        return [
            _example(reading, qa, context)
            for article in articles
            for paragraph in _list(article, "paragraphs", path)
            for context in [conform(paragraph.get("context"), str, f"{path}: context")]
            for qa in _list(paragraph, "qas", path)
        ]
    except DataError as error:
        raise DataError(
            f"{path}: expected SQuAD's JSON, one object of the form {_FORM}, with an article and a "
            f"paragraph for each row of a flat file: {error}"
        ) from None


def _list(tree: dict[str, Any], key: str, path: str) -> list[dict[str, Any]]:
    return conform(tree.get(key), list[dict[str, Any]], f"{path}: {key}")


def _example(reading: Reading, qa: dict[str, Any], context: str) -> tuple[QuestionExample, bool]:
    """The question, and whether it is said to be unanswerable."""
    where = f"{reading.path}: question {shown(qa.get('id'))}"
    has_label = reading.with_labels and "answers" in qa
    answers = _list(qa, "answers", where) if has_label else []
    is_impossible = conform(qa.get("is_impossible", not answers), bool, f"{where}: is_impossible")
    example = QuestionExample(
        id=str(conform(qa.get("id"), int if isinstance(qa.get("id"), int) else str, where)),
        question=conform(qa.get("question"), str, f"{where}: question"),
        context=context,
        answers=tuple(
            (
                conform(answer.get("text"), str, f"{where}: text"),
                conform(answer.get("answer_start"), int, f"{where}: answer_start"),
            )
            for answer in answers
        ),
        has_label=has_label,
    )
    return example, is_impossible


def _wrong(example: QuestionExample) -> str | None:
    """Describes the first wrong answer; None if all are right."""
    for text, start in example.answers:
        found = example.context[max(start, 0) : max(start, 0) + len(text)]
        if not without_edges(text, start)[0] or start < 0 or found != text:
            return f"expected the answer {text!r} at {start}, got {found!r}"
    return None


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
