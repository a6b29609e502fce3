"""Classes and numbers of words, such as named entities, or of the letters of a sequence."""

from __future__ import annotations

import dataclasses
from typing import Annotated

from official.xlnet.configs.base import register_settings
from official.xlnet.configs.task import TaskConfig
from official.xlnet.data.examples import Example
from official.xlnet.errors import ArgumentTypeError
from official.xlnet.files.schema import OneOf
from official.xlnet.tasks.settings import LabelConfig

NAMES = ("token_classification", "token_regression")
HEAD_FORMATS = ("token_classification",)  # No other format has the scale of numbers.
DATASETS = {"conll2003": {"name": "token_classification"}}


@register_settings("task", name=["token_classification"])
class TagConfig(TaskConfig):
    """Classes of words or letters.

    Attributes:
      label_unit: what has a label: `word`, or `letter`, each letter of one string without spaces,
        which is tokenized as a whole, as in pre-training. Training data with such strings sets it.
    """

    label_unit: Annotated[str, OneOf(("word", "letter"))] = "word"

    def named(self, row, with_labels, where):
        if isinstance(row, str) and not with_labels:
            return {"sequence": row} if self.label_unit == "letter" else {"words": row.split()}
        if not isinstance(row, list) or (with_labels and len(row) != 2):
            raise ArgumentTypeError(
                f"{where}: expected {'(words, tags), two lists' if with_labels else 'words'}, got "
                f"{row!r:.60}"
            )
        return dict(zip(("words", "tags"), row, strict=True)) if with_labels else {"words": row}


@register_settings("task", name=["token_regression"])
class NumberConfig(TagConfig, LabelConfig):
    """Numbers of words or letters."""


@dataclasses.dataclass(frozen=True, slots=True)
class TaggedExample(Example):
    """Example of token classification, e.g. named entity recognition.

    Attributes:
      words: the words of the sentence.
      tags: one tag per word; of `token_regression`, a number.
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
