"""Parsing of text with blanks for infilling, such as `The ____ sat`.

`____` (four or more underscores) is a blank of unknown length, `____{3}` one of exactly 3 word
pieces. The surrounding text is not changed. Hence a blank after whitespace or at the start of the
text is filled with pieces that begin a word, and one inside a word (`un____ly`) with pieces that
continue it. Where the vocabulary keeps white space, only a space makes a piece that begins a word.
"""

from __future__ import annotations

import dataclasses
import re

from official.xlnet.errors import DataError, require_data
from official.xlnet.tokenization.special_tokens import UNK_ID, WORD_START
from official.xlnet.tokenization.tokenizer import Tokenizer

BLANK = re.compile(r"_{4,}(?:\{(\d+)\})?")


@dataclasses.dataclass(frozen=True)
class Blank:
    """A blank to fill in.

    Attributes:
      length: number of word pieces; None if unknown.
      begins_word: whether its first piece begins a word.
    """

    length: int | None
    begins_word: bool


@dataclasses.dataclass(frozen=True)
class BlankText:
    """A text split at its blanks.

    Attributes:
      parts: the text before, between and after the blanks.
      ids: token ids of each part.
      blanks: the blanks, one between each two consecutive parts.
    """

    parts: list[str]
    ids: list[list[int]]
    blanks: list[Blank]

    def fill(self, fillings: list[str]) -> str:
        """Replaces each blank by a string.

        Args:
          fillings: one string per blank.

        Returns:
          The completed text.
        """
        texts = [part for pair in zip(self.parts, fillings, strict=False) for part in pair]
        return "".join([*texts, self.parts[-1]])


def has_blank(text: str) -> bool:
    """Whether a text contains a blank."""
    return BLANK.search(text) is not None


def parse_blanks(tokenizer: Tokenizer, text: str) -> BlankText:
    """Splits a text at its blanks and tokenizes the parts.

    Args:
      tokenizer: the tokenizer.
      text: text with at least one blank.

    Returns:
      The parsed text.

    Raises:
      DataError: the text is empty, has no blank, or has a blank of length 0.

    Example:
      >>> parse_blanks(tokenizer, "The ____{2} sat").blanks
      [Blank(length=2, begins_word=True)]
    """
    if not text.strip():
        raise DataError(f"expected a text with a blank, got the empty text {text!r}")
    pieces = BLANK.split(text)
    parts, lengths = pieces[::2], pieces[1::2]
    if not lengths:
        raise DataError(f"expected a blank, written ____ (four underscores), in {text!r}")
    blanks = []
    for blank_number, (length, before) in enumerate(zip(lengths, parts, strict=False), 1):
        num_pieces = None if length is None else int(length)
        where, got = f"blank {blank_number} of {text!r}", f"____{{{length}}}"
        require_data(num_pieces != 0, where, "at least 1 piece", got)
        keeps = tokenizer.keep_whitespace
        after_space = before.endswith(" ") if keeps else before[-1:].isspace()
        blanks.append(Blank(num_pieces, begins_word=not before or after_space))
    texts = [*parts]
    if tokenizer.keep_whitespace:  # The space before a blank is in its first piece.
        texts[:-1] = [part.removesuffix(" ") for part in parts[:-1]]
    ids = [tokenizer.encode(texts[0])]
    ids += [_encode_after_blank(tokenizer, part) for part in texts[1:]]
    return BlankText(parts, ids, blanks)


def _encode_after_blank(tokenizer: Tokenizer, text: str) -> list[int]:
    """Token ids of text after a blank; it starts a new word only if it starts with whitespace."""
    if tokenizer.keep_whitespace and text.startswith(" "):
        return tokenizer.encode(text[1:]) or [tokenizer.piece_to_id(WORD_START)]
    ids = tokenizer.encode(text)
    if not ids or (text[0].isspace() and not tokenizer.keep_whitespace):
        return ids
    # The tokenizer prepends a space to every text; remove it.
    first = tokenizer.id_to_piece(ids[0])
    if not first.startswith(WORD_START):
        return ids
    inside = first[len(WORD_START) :]
    if not inside or tokenizer.piece_to_id(inside) != UNK_ID:
        return [tokenizer.piece_to_id(inside), *ids[1:]] if inside else ids[1:]
    return [*map(tokenizer.piece_to_id, inside), *ids[1:]]
