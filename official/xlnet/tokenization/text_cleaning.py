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
            parts[1::2] = map(fold, parts[1::2])
            text = "".join(parts)
    return text.lower() if lowercase else text


@functools.lru_cache(maxsize=1 << 16)
def fold(run: str) -> str:
    """Returns a text in NFKD without combining marks; lone surrogates are replaced by U+FFFD."""
    decomposed = unicodedata.normalize("NFKD", replace_lone_surrogates(run))
    return "".join(c for c in decomposed if not unicodedata.combining(c))
