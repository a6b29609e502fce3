"""Export settings: bucket lengths, weight storage and request limits."""

from __future__ import annotations

import dataclasses

from official.xlnet.configs.choices import WEIGHT_STORAGE
from official.xlnet.errors import ConfigError


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of an exported model.

    Attributes:
      lengths: bucket lengths that inputs are padded to, in tokens, ascending. The last one is the
        maximum input length.
      weights: storage dtype of matrices, one of `WEIGHT_STORAGE`. Computation is in float32.
      text_columns: names of the text inputs; for several tasks, those of all of them.
      columns: the columns of the data that the text inputs stand for; empty: those of their names.
      texts_of_subtasks: for several tasks, names of the text inputs of each; empty: all of them.
      max_characters: maximum length of a text; longer ones are rejected.
      max_windows: maximum number of windows of a text; longer ones are rejected.
    """

    lengths: tuple[int, ...]
    weights: str = "float32"
    text_columns: tuple[str, ...] = ("text",)
    columns: tuple[str, ...] = ()
    texts_of_subtasks: tuple[tuple[str, ...], ...] = ()
    max_characters: int = 200_000
    max_windows: int = 512

    def check(self, shortest: int) -> None:
        """Validates the settings.

        Args:
          shortest: minimum length of an input, in tokens.

        Raises:
          ConfigError: a setting is invalid.
        """
        if list(self.lengths) != sorted(set(self.lengths)) or self.lengths[0] < shortest:
            raise ConfigError(
                f"buckets: expected ascending lengths from {shortest} on, got "
                + ", ".join(map(str, self.lengths))
            )
        if self.weights not in WEIGHT_STORAGE:
            raise ConfigError(
                f"weights: expected one of {', '.join(WEIGHT_STORAGE)}, got {self.weights}"
            )

    @property
    def num_texts(self) -> int:
        """Largest number of texts in one sequence."""
        return max(map(len, self.texts_of_subtasks or (self.text_columns,)))

    @property
    def max_length(self) -> int:
        """Maximum input length in tokens, T."""
        return self.lengths[-1]
