"""Scripts that put no spaces between words: Han, kana, Thai, Lao, Khmer, Myanmar, Tibetan, others.

They are the scripts that Unicode breaks lines in without spaces (UAX #14, classes ID, CJ and SA),
and Tibetan, which separates syllables. Hangul is not one of them.

**A piece counts as a word there**, and so does each of their punctuation marks. SentencePiece's
pieces are the strings of one or more characters that a text repeats, learned from that text, the
same in Python and in a graph. A dictionary's words would need a dictionary for each language, at
the version that a model was trained with. A piece that begins with a combining mark, or with a
letter that modifies the one before it (々, ー, ๆ), continues the word before it.
"""

from __future__ import annotations

import re
import unicodedata

_THAI_AND_LAO = "\u0e00-\u0eff"
# Inside of a character class. Half-width Hangul ends the forms of U+FF01 and above.
CHARACTERS = _THAI_AND_LAO + (
    "\u0f00-\u0fff"  # Tibetan.
    "\u1000-\u109f\ua9e0-\ua9ff\uaa60-\uaa7f"  # Myanmar.
    "\u1780-\u17ff\u19e0-\u19ff"  # Khmer.
    "\u1950-\u19df\u1a20-\u1aaf\uaa80-\uaadf"  # Tai Le, New Tai Lue, Tai Tham, Tai Viet.
    "\u2e80-\u2fdf\u3000-\u312f\u3190-\u31ff\ufe30-\ufe4f\uff01-\uff9f"  # Marks, kana, bopomofo.
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd"  # Han.
    "\U0001aff0-\U0001b16f"  # Kana.
)
_BEGINS = re.compile(f"[{CHARACTERS}]")
_ENDS = re.compile(f"[{CHARACTERS}]$")
_ENDS_IN_THAI_OR_LAO = re.compile(f"[{_THAI_AND_LAO}]$")
_CONTINUING = ("Mn", "Mc", "Me", "Lm")  # Marks and letters that modify the letter before them.

# Full stops, question and exclamation marks, which need no space after them. The Thai ฯ and the
# Lao ຯ are not among them: they abbreviate, and stand inside of sentences (กรุงเทพฯ, ฯลฯ).
FULL_STOPS = (
    "\u3002\uff01\uff1f\uff61"  # 。！？｡
    "\u104b\u17d4\u17d5"  # Myanmar and Khmer.
    "\u0f0d-\u0f12\u0f14"  # Tibetan shad and its forms.
    "\u0e5a\u0e5b"  # Thai, at the end of a section.
)
OPENING_MARKS = "「『（《〈【"
CLOSING_MARKS = "」』”’）》〉】"

# A character of these scripts, or a run of others without whitespace.
WORD = re.compile(rf"[{CHARACTERS}]|[^\s{CHARACTERS}]+")


def begins_unspaced(text: str) -> bool:
    """Whether a text begins with a character of such a script that does not continue a word.

    Example:
      >>> [begins_unspaced(text) for text in ("人权", "。", "ー", "man", "")]
      [True, True, False, False, False]
    """
    return bool(_BEGINS.match(text)) and not continues_word(text)


def begins_unspaced_word(text: str) -> bool:
    """Whether a text begins with a letter of such a script that does not continue a word."""
    return begins_unspaced(text) and text[0].isalpha()


def begins_unspaced_sentence(text: str) -> bool:
    """Whether a text begins with such a letter, or with an opening bracket or quote."""
    return begins_unspaced_word(text) or text.startswith(tuple(OPENING_MARKS))


def ends_unspaced(text: str) -> bool:
    """Whether the last character of a text is of such a script."""
    return bool(_ENDS.search(text))


def ends_in_thai_or_lao(text: str) -> bool:
    """Whether the last character of a text is Thai or Lao: there, a space ends a sentence.

    Spaces stand between sentences and between clauses, and there is no full stop.
    """
    return bool(_ENDS_IN_THAI_OR_LAO.search(text))


def continues_word(text: str) -> bool:
    """Whether a text begins with a combining mark or a modifier letter."""
    return unicodedata.category(text[0]) in _CONTINUING if text else False
