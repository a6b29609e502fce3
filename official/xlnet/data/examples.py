"""Task examples before tokenization.

They are created by the readers in `data_prep.tasks` and encoded by the tasks in
`official.xlnet.tasks`. The label is None if the file is unlabelled, as for prediction.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable

Label = str | float | tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class TextExample:
    """Example of classification, multi-label classification or regression.

    Attributes:
      id: identifies the example in predictions.
      texts: one or more texts, each encoded as its own segment.
      label: a class name, a tuple of class names (multi-label), or a number (regression).
      subtask: name of its data set in multi-task training.
    """

    id: str
    texts: tuple[str, ...]
    label: Label | None = None
    subtask: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class ChoiceExample:
    """Example of multiple choice.

    Attributes:
      id: identifies the example in predictions.
      texts: texts shared by all choices, e.g. passage and question.
      choices: the choices.
      label: index of the correct choice.
      group: subset with a separate metric, e.g. `middle` of RACE.
    """

    id: str
    texts: tuple[str, ...]
    choices: tuple[str, ...]
    label: int | None = None
    group: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class QuestionExample:
    """Example of extractive question answering; the question may be unanswerable.

    Attributes:
      id: identifies the example in predictions.
      question: the question.
      context: the paragraph that may contain the answer.
      answers: reference answers as (text, start offset in `context` in code points); empty if the
        question is unanswerable.
      has_label: whether the example is labelled.
      weight: weight of the example in the training loss.
    """

    id: str
    question: str
    context: str
    answers: tuple[tuple[str, int], ...] = ()
    has_label: bool = True
    weight: float = 1.0


@dataclasses.dataclass(frozen=True, slots=True)
class TaggedExample:
    """Example of token classification, e.g. named entity recognition.

    Attributes:
      id: identifies the example in predictions.
      words: the words of the sentence.
      tags: one tag per word.
    """

    id: str
    words: tuple[str, ...]
    tags: tuple[str, ...] | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class RankingExample:
    """Example of document ranking: a query and a candidate document.

    Attributes:
      id: id of the document.
      query_id: id of the query; the documents of a query are ranked against each other.
      query: text of the query.
      document: text of the document.
      relevance: relevance grade; 0 is irrelevant, below 0 is junk.
      not_ranked: (document, grade) pairs of the query's judged documents that are not candidates;
        they count in the ideal ranking of NDCG.
    """

    id: str
    query_id: str
    query: str
    document: str
    relevance: float | None = None
    not_ranked: tuple[tuple[str, float], ...] = ()


Example = TextExample | ChoiceExample | QuestionExample | TaggedExample | RankingExample


def examples_checksum(examples: Iterable[Example]) -> str:
    """Returns the SHA-256 of what the examples say, in order.

    Attributes with default values do not count, so that new ones do not change it.

    Args:
      examples: the examples.
    """
    digest = hashlib.sha256()
    fields: dict[type, list[tuple[str, object]]] = {}
    for example in examples:
        kind = type(example)
        if kind not in fields:
            fields[kind] = [(field.name, field.default) for field in dataclasses.fields(kind)]
        values = {name: getattr(example, name) for name, _ in fields[kind]}
        said = {name: values[name] for name, default in fields[kind] if values[name] != default}
        digest.update(json.dumps([kind.__name__, said], default=repr).encode() + b"\n")
    return digest.hexdigest()
