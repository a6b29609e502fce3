"""What a user may choose about an exported model."""

from __future__ import annotations

import dataclasses

from official.xlnet.errors import ConfigError
from official.xlnet.inference.network.stored_weights import STORAGE


@dataclasses.dataclass(frozen=True)
class Settings:
    """Choices of an export.

    Attributes:
      lengths: the lengths that inputs are padded to, ascending; the last one is the longest
        input.
      weights: how matrices are stored; one of `STORAGE`.
      text_columns: names of the texts that make up an input.
      max_characters: longest text that is taken; a longer one is an error.
      max_windows: windows that one text may be cut into; more are an error.
    """

    lengths: tuple[int, ...]
    weights: str = "float32"
    text_columns: tuple[str, ...] = ("text",)
    max_characters: int = 200_000
    max_windows: int = 512

    def check(self, shortest: int) -> None:
        """Raises `ConfigError` where an export cannot be as the settings want it.

        Args:
          shortest: the least tokens of an input.
        """
        if list(self.lengths) != sorted(set(self.lengths)) or self.lengths[0] < shortest:
            raise ConfigError(
                f"buckets: expected ascending lengths from {shortest} on, got "
                + ", ".join(map(str, self.lengths))
            )
        if self.weights not in STORAGE:
            raise ConfigError(f"weights: expected one of {', '.join(STORAGE)}, got {self.weights}")
        if not 1 <= len(self.text_columns) <= 3:
            raise ConfigError(
                f"text columns: expected 1 to 3, got {', '.join(self.text_columns) or 'none'}"
            )

    @property
    def max_length(self) -> int:
        """Tokens T of the longest input."""
        return self.lengths[-1]
