"""Reader of SQuAD 1.1 and 2.0 JSON files.

Format: `{"data": [{"paragraphs": [{"context": …, "qas": […]}]}]}`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from official.xlnet.data.examples import QuestionExample
from official.xlnet.data.reading import Reading, register_reader
from official.xlnet.errors import DataError


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
        with open(reading.path, encoding="utf-8") as file:
            articles = json.load(file)["data"]
        paragraphs = [paragraph for article in articles for paragraph in article["paragraphs"]]
        rows = [(paragraph["context"], qa) for paragraph in paragraphs for qa in paragraph["qas"]]
        questions = [
            QuestionExample(
                id=str(qa["id"]),
                question=qa["question"],
                context=context,
                answers=()
                if qa.get("is_impossible")
                else tuple((a["text"], int(a["answer_start"])) for a in qa.get("answers", ())),
                has_label=reading.with_labels and "answers" in qa,
            )
            for context, qa in rows
        ]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{reading.path}: expected SQuAD's JSON, got {error!r}") from None
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


def _occurs(example: QuestionExample, text: str, start: int) -> bool:
    """Whether an answer occurs at an offset of the paragraph."""
    return bool(text) and start >= 0 and example.context[start : start + len(text)] == text
