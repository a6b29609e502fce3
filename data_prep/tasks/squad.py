"""Reader of SQuAD 1.1 and 2.0 JSON files.

Format: `{"data": [{"paragraphs": [{"context": …, "qas": […]}]}]}`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from official.xlnet.data.examples import QuestionExample
from official.xlnet.data.reading import Reading, register_reader
from official.xlnet.errors import DataError
from official.xlnet.files.json_files import read_json
from official.xlnet.files.schema import conform, shown


@register_reader("question_answering")
def read_squad(reading: Reading) -> Iterator[QuestionExample]:
    """Reads questions; rejects those whose answer does not occur at the given offset.

    Args:
      reading: the file and reading options.

    Yields:
      One example per question.

    Raises:
      DataError: the file is not valid SQuAD JSON, or a question is invalid in strict mode.
    """
    try:
        questions = _questions(reading)
    except DataError as error:
        raise DataError(f"{reading.path}: expected SQuAD's JSON: {error}") from None
    for example in questions:
        if not example.question.strip() or not example.context.strip():
            reading.reject("empty", f"{reading.path}: question {example.id} has no text")
            continue
        wrong = next(((t, s) for t, s in example.answers if not _occurs(example, t, s)), None)
        if wrong:
            text, start = wrong
            reading.reject(
                "answers_not_in_paragraph",
                f"{reading.path}: question {example.id}: expected the answer {text!r} at "
                f"{start}, got {example.context[start : start + len(text)]!r}",
            )
            continue
        yield example


def _questions(reading: Reading) -> list[QuestionExample]:
    path = reading.path
    tree = conform(read_json(path), dict[str, Any], path)
    articles = conform(tree.get("data"), list[dict[str, Any]], f"{path}: data")
    return [
        _example(reading, qa, context)
        for article in articles
        for paragraph in _list(article, "paragraphs", path)
        for context in [conform(paragraph.get("context"), str, f"{path}: context")]
        for qa in _list(paragraph, "qas", path)
    ]


def _list(tree: dict[str, Any], key: str, path: str) -> list[dict[str, Any]]:
    return conform(tree.get(key), list[dict[str, Any]], f"{path}: {key}")


def _example(reading: Reading, qa: dict[str, Any], context: str) -> QuestionExample:
    where = f"{reading.path}: question {shown(qa.get('id'))}"
    answers = _list({"answers": [], **qa}, "answers", where)
    return QuestionExample(
        id=str(conform(qa.get("id"), int if isinstance(qa.get("id"), int) else str, where)),
        question=conform(qa.get("question"), str, f"{where}: question"),
        context=context,
        answers=()
        if qa.get("is_impossible")
        else tuple(
            (
                conform(answer.get("text"), str, f"{where}: text"),
                conform(answer.get("answer_start"), int, f"{where}: answer_start"),
            )
            for answer in answers
        ),
        has_label=reading.with_labels and "answers" in qa,
    )


def _occurs(example: QuestionExample, text: str, start: int) -> bool:
    """Whether an answer occurs at an offset of the paragraph."""
    return bool(text) and start >= 0 and example.context[start : start + len(text)] == text
