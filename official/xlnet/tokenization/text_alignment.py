"""Where each character of a normalized text is in the text as it was."""

from __future__ import annotations

import re

import numpy as np

from official.xlnet.files.json_files import replace_lone_surrogates
from official.xlnet.tokenization.text_cleaning import clean, fold


def clean_with_alignment(
    text: str,
    lowercase: bool = False,
    keep_accents: bool = False,
    keep_whitespace: bool = False,
) -> tuple[str, np.ndarray, np.ndarray]:
    r"""Normalizes text and aligns each normalized character to its source.

    Args:
      text: see `clean`.
      lowercase: see `clean`.
      keep_accents: see `clean`.
      keep_whitespace: see `clean`.

    Returns:
      cleaned: `clean(text, lowercase, keep_accents, keep_whitespace)`.
      start: int64 [len(cleaned)], offset of each character's source in `text`, in code points.
      end: int64 [len(cleaned)], end offset (exclusive). A dropped combining mark belongs to the
        preceding character.

    Example:
      >>> clean_with_alignment("Cafe\u0301  ''")
      ('Cafe "', array([0, 1, 2, 3, 5, 7]), array([1, 2, 3, 5, 7, 9]))
    """
    text = replace_lone_surrogates(text)
    if keep_whitespace:
        sizes = [len(character.lower()) if lowercase else 1 for character in text]
        source = np.repeat(np.arange(len(text)), sizes)
        return clean(text, lowercase, keep_whitespace=True), source, source + 1
    aligned: list[tuple[str, int, int]] = []  # Characters with the start and end of their source.
    gap_start, size = -1, 0  # End of the previous word; characters from the previous source.
    for word in re.finditer(r"\S+", text):
        if gap_start >= 0:
            aligned.append((" ", gap_start, word.start()))
        gap_start = word.end()
        for token in re.finditer("``|''|.", word[0], re.DOTALL):
            start, end = word.start() + token.start(), word.start() + token.end()
            kept = '"' if end - start == 2 else token[0]
            if not (keep_accents or kept.isascii()):
                kept = fold(kept)
            if not kept and aligned and aligned[-1][0] != " ":
                aligned[-size:] = [(c, first, end) for c, first, _ in aligned[-size:]]
                continue
            characters = kept.lower() if lowercase else kept
            aligned += [(character, start, end) for character in characters]
            size = len(characters)
    # Lower-casing sigma depends on the surrounding word.
    characters = "".join(character for character, *_ in aligned)
    cleaned = clean(text, lowercase, keep_accents) if lowercase else characters
    sources = np.array([source for _, *source in aligned], np.int64).reshape(-1, 2)
    return cleaned, sources[:, 0], sources[:, 1]


def realigned(
    old: str, new: str, starts: np.ndarray, ends: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Start and end in the original text of each character of a text with marks.

    Args:
      old: the text without them.
      new: the text with them; they lie between the characters beside them.
      starts: int64 [len(old) + 1], start of each character of `old` and of the end.
      ends: int64 [len(old)].
    """
    sources, last = [], 0
    for character in new:
        if last < len(old) and character == old[last]:
            sources.append((starts[last], ends[last]))
            last += 1
        else:  # A mark: between the end of the character before it and the start of the next.
            sources.append((starts[last], ends[last - 1] if last else 0))
    spans = np.array(sources, np.int64).reshape(-1, 2)
    return spans[:, 0], spans[:, 1]
