"""Token classification, such as named entity recognition."""

from __future__ import annotations

import dataclasses

from official.xlnet.configs.base import register_settings
from official.xlnet.configs.task import TaskConfig
from official.xlnet.data.examples import Example
from official.xlnet.errors import ArgumentTypeError

DATASETS = {"conll2003": {"name": "token_classification"}}


@register_settings("task", name=["token_classification"])
class TagConfig(TaskConfig):
    """Tags of words; the task has no keys of its own."""

    def named(self, row, with_labels, where):
        if isinstance(row, str) and not with_labels:
            return {"words": row.split()}
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
      words: the words of the sentence.
      tags: one tag per word.
      group: examples of one group are held out together.
    """

    label_field = "tags"

    words: tuple[str, ...]
    tags: tuple[str, ...] | None = None
    group: str = ""

    def inputs(self, names):
        return {names[0]: " ".join(self.words)}
