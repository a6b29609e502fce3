"""Example of token classification, e.g. named entity recognition."""

from __future__ import annotations

import dataclasses

from official.xlnet.data.examples import Example


@dataclasses.dataclass(frozen=True, slots=True)
class TaggedExample(Example):
    """Example of token classification, e.g. named entity recognition.

    Attributes:
      words: the words of the sentence.
      tags: one tag per word.
    """

    words: tuple[str, ...]
    tags: tuple[str, ...] | None = None

    @property
    def is_labelled(self):
        return self.tags is not None

    def inputs(self, names):
        return {names[0]: " ".join(self.words)}
