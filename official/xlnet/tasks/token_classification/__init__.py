"""Classes of words, such as named entities, or of other units of a text."""

from __future__ import annotations

import dataclasses
from typing import Annotated, ClassVar

from official.xlnet.configs.base import register_settings
from official.xlnet.configs.registry import LABEL_UNITS
from official.xlnet.configs.task import TaskConfig
from official.xlnet.data.examples import Example
from official.xlnet.errors import ArgumentTypeError

DATASETS = {"conll2003": {"name": "token_classification"}}


@register_settings("task", name=["token_classification"])
class TagConfig(TaskConfig):
    """Classes of words.

    Attributes:
      label_unit: what has a label: `word`; or, of the project `sequences`, `letter`, each letter of
        one string without spaces, which is tokenized as a whole, as in pre-training. Training data
        with such strings sets it.
    """

    label_unit: Annotated[str, LABEL_UNITS] = "word"

    rank_of_rows: ClassVar[int] = 1  # A row has a list of words.

    def values_by_column(self, row, with_labels, where):
        if isinstance(row, str) and not with_labels:
            return LABEL_UNITS[self.label_unit]().row_of(row)
        if not isinstance(row, list) or (with_labels and len(row) != 2):
            raise ArgumentTypeError(
                f"{where}: expected {'(words, tags), two lists' if with_labels else 'words'}, got "
                f"{row!r:.60}"
            )
        return dict(zip(("words", "tags"), row, strict=True)) if with_labels else {"words": row}


@dataclasses.dataclass(frozen=True, slots=True)
class TaggedExample(Example):
    """Example of token classification, e.g. named entity recognition.

    Attributes:
      words: the words of the sentence, or the letters of the sequence.
      tags: one tag or number per word.
      group: examples of one group are held out together.
      separator: what is between the words: nothing if they are the letters of a sequence.
    """

    label_field = "tags"

    words: tuple[str, ...]
    tags: tuple[str | float, ...] | None = None
    group: str = ""
    separator: str = " "

    def inputs(self, names):
        return {names[0]: self.separator.join(self.words)}
