"""Texts with blanks: `The ____ sat` has one, of a length to be found; `____{3}` one of 3 pieces.

The text around a blank stays as it is. So a blank after white space, or at the very beginning,
is filled with pieces that begin a word; one inside a word (`un____ly`) with pieces that do not.
"""

from __future__ import annotations

import dataclasses
import re

from official.xlnet.errors import DataError
from official.xlnet.tokenization.special_tokens import UNK_ID
from official.xlnet.tokenization.tokenizer import WORD_START, Tokenizer

_BLANK = re.compile(r"_{4,}(?:\{(\d+)\})?")


@dataclasses.dataclass(frozen=True)
class Blank:
    """One blank.

    Attributes:
      length: number of pieces that fill it; None: to be found.
      begins_word: whether what fills it begins a word.
    """

    length: int | None
    begins_word: bool


@dataclasses.dataclass(frozen=True)
class BlankText:
    """A text with blanks.

    Attributes:
      parts: the text before the first blank, between blanks, and after the last one.
      ids: the ids of those parts.
      blanks: the blanks; one fewer than there are parts.
    """

    parts: list[str]
    ids: list[list[int]]
    blanks: list[Blank]

    def fill(self, fillings: list[str]) -> str:
        """Returns the text with each blank replaced."""
        texts = [part for pair in zip(self.parts, fillings, strict=False) for part in pair]
        return "".join([*texts, self.parts[-1]])


def has_blank(text: str) -> bool:
    """Whether a text has a blank."""
    return _BLANK.search(text) is not None


def parse_blanks(tokenizer: Tokenizer, text: str) -> BlankText:
    """Splits a text at its blanks.

    Raises:
      DataError: the text is empty, has no blank, or a blank of no length.
    """
    if not text.strip():
        raise DataError(f"expected a text with a blank, got {text!r}, which is empty")
    matches = list(_BLANK.finditer(text))
    if not matches:
        raise DataError(f"expected a blank, written ____ (four underscores), in {text!r}")
    starts = [0, *(match.end() for match in matches)]
    ends = [*(match.start() for match in matches), len(text)]
    parts = [text[start:end] for start, end in zip(starts, ends, strict=True)]
    blanks = []
    for number, (match, before) in enumerate(zip(matches, parts, strict=False), 1):
        length = None if match[1] is None else int(match[1])
        if length == 0:
            raise DataError(
                f"blank {number} of {text!r}: expected at least 1 piece, got {match[0]}"
            )
        blanks.append(Blank(length, begins_word=not before or before[-1].isspace()))
    ids = [tokenizer.encode(parts[0])]
    ids += [_encode_after_blank(tokenizer, part) for part in parts[1:]]
    return BlankText(parts, ids, blanks)


def _encode_after_blank(tokenizer: Tokenizer, text: str) -> list[int]:
    """Ids of a text that begins a word only if it begins with white space."""
    ids = tokenizer.encode(text)
    if not ids or text[0].isspace():
        return ids
    # The tokenizer puts a space before every text.
    first = tokenizer.id_to_piece(ids[0])
    if not first.startswith(WORD_START):
        return ids
    inside = first[len(WORD_START) :]
    if not inside or tokenizer.piece_to_id(inside) != UNK_ID:
        return [tokenizer.piece_to_id(inside), *ids[1:]] if inside else ids[1:]
    return [*map(tokenizer.piece_to_id, inside), *ids[1:]]
