"""What a task reads: examples in words, before any tokenizer has seen them.

Readers (`data_prep.tasks`) make them, tasks (`official.xlnet.tasks`) take them. A label is None
where the file has none, as in a file to predict.
"""

from __future__ import annotations

import dataclasses

Label = str | float | tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class TextExample:
    """Texts with a class, several classes or a number.

    Attributes:
      id: names the example in predictions.
      texts: one or more, each its own segment.
      label: name of a class; a tuple of names; or a number.
      subtask: of multi-task training, the data set it is from.
    """

    id: str
    texts: tuple[str, ...]
    label: Label | None = None
    subtask: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class ChoiceExample:
    """A question with options.

    Attributes:
      id: names the example in predictions.
      texts: what all options share, e.g. passage and question.
      choices: the options.
      label: index of the right one.
      group: part of the data set that has a figure of its own, e.g. `middle` of RACE.
    """

    id: str
    texts: tuple[str, ...]
    choices: tuple[str, ...]
    label: int | None = None
    group: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class QuestionExample:
    """A question about a paragraph whose answer is a part of it, or nothing.

    Attributes:
      id: names the example in predictions.
      question: the question.
      context: the paragraph.
      answers: (text, first code point in `context`) of every annotator; none: unanswerable.
      has_label: whether `answers` is known.
    """

    id: str
    question: str
    context: str
    answers: tuple[tuple[str, int], ...] = ()
    has_label: bool = True


@dataclasses.dataclass(frozen=True, slots=True)
class TaggedExample:
    """A sentence whose words have tags.

    Attributes:
      id: names the example in predictions.
      words: the words.
      tags: as many tags.
    """

    id: str
    words: tuple[str, ...]
    tags: tuple[str, ...] | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class RankingExample:
    """A document that may answer a query.

    Attributes:
      id: of the document.
      query_id: of the query; documents of one query are ranked against each other.
      query: its text.
      document: the text.
      relevance: grade, 0 for irrelevant.
    """

    id: str
    query_id: str
    query: str
    document: str
    relevance: float | None = None


Example = TextExample | ChoiceExample | QuestionExample | TaggedExample | RankingExample
