"""Text normalization before SentencePiece, as for the published checkpoints.

    cleaned = lower(drop_combining(NFKD(straight_quotes(single_spaces(text)))))

(reference: `preprocess_text` of the XLNet release). NFKD followed by dropping combining marks can
be applied to each character independently, since NFKD only reorders combining marks. Hence short
runs of characters can be normalized separately and cached, and each normalized character has a
well-defined source in the text.
"""

from __future__ import annotations

import functools
import re
import unicodedata

import numpy as np

from official.xlnet.files.json_files import replace_lone_surrogates

_NON_ASCII_RUN = re.compile("([^\x00-\x7f]{1,16})")


def clean(
    text: str,
    lowercase: bool = False,
    keep_accents: bool = False,
    keep_whitespace: bool = False,
) -> str:
    r"""Normalizes text for SentencePiece.

    Args:
      text: any string; lone surrogates, which UTF-8 cannot encode, are replaced by U+FFFD.
      lowercase: whether to lower-case the text.
      keep_accents: whether to skip NFKD and the removal of combining marks.
      keep_whitespace: whether to change nothing else: white space, quotes and accents stay.

    Returns:
      The normalized text.

    Example:
      >>> clean("  ``Café''\n ﬁne ")
      '"Cafe" fine'
    """
    if keep_whitespace:
        text = replace_lone_surrogates(text)
        return text.lower() if lowercase else text
    # The space is the only printable whitespace character.
    if not text.isprintable() or "  " in text or text[:1] == " " or text[-1:] == " ":
        text = " ".join(text.split())
    text = text.replace("``", '"').replace("''", '"')
    if not text.isascii():
        if keep_accents:
            text = replace_lone_surrogates(text)
        else:
            parts = _NON_ASCII_RUN.split(text)  # ASCII, other, ASCII, …
            parts[1::2] = map(_fold, parts[1::2])
            text = "".join(parts)
    return text.lower() if lowercase else text


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
                kept = _fold(kept)
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


@functools.lru_cache(maxsize=1 << 16)
def _fold(run: str) -> str:
    """NFKD without combining marks; lone surrogates are replaced by U+FFFD."""
    decomposed = unicodedata.normalize("NFKD", replace_lone_surrogates(run))
    return "".join(c for c in decomposed if not unicodedata.combining(c))
