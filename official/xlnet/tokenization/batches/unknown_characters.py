"""Counts of the characters that a vocabulary lacks."""

from __future__ import annotations

from collections.abc import Set


def unknown_counts(normalized: str, num_known: int, known: Set[str]) -> dict[str, int]:
    """Counts the characters of `<unk>` in a text; see `Tokenizer.counts`.

    Args:
      normalized: the text, as SentencePiece divides it into pieces.
      num_known: number of characters in its other pieces.
      known: characters that are a piece of the vocabulary.

    Returns:
      `characters` and `unknown_characters`, which are the same number, and, if there are any,
      `other_case`, letters of which the vocabulary has the other case.
    """
    num_unknown = len(normalized) - num_known
    counts = {"characters": num_unknown, "unknown_characters": num_unknown}
    letters = {letter for letter in {*normalized} - known if letter.swapcase() in known}
    if letters:
        counts["other_case"] = sum(map(normalized.count, letters))
    return counts
