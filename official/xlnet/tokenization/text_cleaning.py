"""Text cleaning before SentencePiece, as the published checkpoints were trained with.

    cleaned = lower(drop_combining(NFKD(straight_quotes(single_spaces(text)))))

(reference: `preprocess_text` of the XLNet release). NFKD and dropping work character by
character: the reordering inside NFKD concerns combining marks only, and those are dropped. So
short runs can be cleaned one by one and remembered, and every cleaned character comes from one
place of the text.
"""

from __future__ import annotations

import functools
import re
import unicodedata

import numpy as np

_NON_ASCII_RUN = re.compile("([^\x00-\x7f]{1,16})")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_REPLACEMENT = "\ufffd"


def clean(text: str, lowercase: bool = False, keep_accents: bool = False) -> str:
    r"""Returns the text that SentencePiece is to cut.

    Args:
      text: any string; a lone surrogate, which UTF-8 cannot hold, becomes U+FFFD.
      lowercase: whether to lower-case.
      keep_accents: whether to skip NFKD and the dropping of combining marks.

    Example:
      >>> clean("  ``Café''\n ﬁne ")
      '"Cafe" fine'
    """
    # The only white space that is printable is the plain space.
    if not text.isprintable() or "  " in text or text[:1] == " " or text[-1:] == " ":
        text = " ".join(text.split())
    text = text.replace("``", '"').replace("''", '"')
    if not text.isascii():
        if keep_accents:
            text = _LONE_SURROGATE.sub(_REPLACEMENT, text)
        else:
            parts = _NON_ASCII_RUN.split(text)  # ASCII, other, ASCII, …
            parts[1::2] = map(_fold, parts[1::2])
            text = "".join(parts)
    return text.lower() if lowercase else text


def clean_with_alignment(
    text: str, lowercase: bool = False, keep_accents: bool = False
) -> tuple[str, np.ndarray, np.ndarray]:
    r"""Cleans a text and says where every cleaned character comes from.

    Args:
      text: see `clean`.
      lowercase: see `clean`.
      keep_accents: see `clean`.

    Returns:
      cleaned: `clean(text, lowercase, keep_accents)`.
      start: int64 [len(cleaned)], first code point of the character's source in `text`.
      end: int64 [len(cleaned)], one past its last code point; a dropped combining mark belongs
        to the character before it.

    Example:
      >>> clean_with_alignment("Cafe\u0301  ''")
      ('Cafe "', array([0, 1, 2, 3, 5, 7]), array([1, 2, 3, 5, 7, 9]))
    """
    text = _LONE_SURROGATE.sub(_REPLACEMENT, text)
    characters: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    gap_start = -1  # End of the word before.
    for word in re.finditer(r"\S+", text):
        if gap_start >= 0:
            characters.append(" ")
            starts.append(gap_start)
            ends.append(word.start())
        gap_start = word.end()
        for token in re.finditer("``|''|.", word[0], re.DOTALL):
            start, end = word.start() + token.start(), word.start() + token.end()
            kept = '"' if end - start == 2 else token[0]
            if not (keep_accents or kept.isascii()):
                kept = _fold(kept)
            if not kept and characters and characters[-1] != " ":
                ends[-1] = end
            for character in kept.lower() if lowercase else kept:
                characters.append(character)
                starts.append(start)
                ends.append(end)
    # A sigma is lower-cased by the word around it.
    cleaned = clean(text, lowercase, keep_accents) if lowercase else "".join(characters)
    return cleaned, np.array(starts, np.int64), np.array(ends, np.int64)


@functools.lru_cache(maxsize=1 << 16)
def _fold(run: str) -> str:
    """NFKD without combining marks; lone surrogates become U+FFFD."""
    decomposed = unicodedata.normalize("NFKD", _LONE_SURROGATE.sub(_REPLACEMENT, run))
    return "".join(c for c in decomposed if not unicodedata.combining(c))
