"""Quality filters for documents.

The paper filters its web text with "heuristics to aggressively filter out short or low-quality
articles". The thresholds are the rules of Gopher (Rae et al., 2021, table A1) that apply to any
language. In scripts without spaces, where words are only known after tokenization, each character
counts as a word, as in the word counts of text processors. All filters are off by default.
"""

from __future__ import annotations

from data_prep.corpus.readers import Document
from data_prep.record_settings import Settings
from official.xlnet.tokenization.unspaced_scripts import WORD, ends_unspaced

_MEAN_WORD_LENGTH = (2.0, 12.0)  # Allowed range, in characters.
_MIN_WORDS_WITH_LETTERS = 0.7  # Fraction of words; the others are fractions of lines.
_MAX_REPEATED_LINES = 0.3
_MAX_LIST_LINES = 0.9
_MAX_CUT_LINES = 0.3
_LIST_MARKS = ("-", "*", "•", "‣", "·")
_ELLIPSES = ("...", "…")


def reason_to_drop(document: Document, settings: Settings) -> str | None:
    """Returns the reason for dropping a document, or None to keep it.

    Args:
      document: the paragraphs of the document.
      settings: uses `min_words` and `drop_low_quality`.

    Returns:
      `too_short`, `low_quality` or None.
    """
    if not settings.min_words and not settings.drop_low_quality:
        return None
    document = [bare for line in document if (bare := line.strip())]
    words = [word for line in document for word in WORD.findall(line)]
    if len(words) < settings.min_words:
        return "too_short"
    if settings.drop_low_quality and _is_low_quality(document, words):
        return "low_quality"
    return None


def _is_low_quality(document: Document, words: list[str]) -> bool:
    if not words:
        return True
    low, high = _MEAN_WORD_LENGTH
    spaced = [len(word) for word in words if not ends_unspaced(word)]
    if spaced and not low <= sum(spaced) / len(spaced) <= high:
        return True
    with_letters = sum(any(map(str.isalpha, word)) for word in words)
    if with_letters < _MIN_WORDS_WITH_LETTERS * len(words):
        return True
    num_lines = len(document)
    return (
        num_lines - len(set(document)) > _MAX_REPEATED_LINES * num_lines
        or sum(line.startswith(_LIST_MARKS) for line in document) > _MAX_LIST_LINES * num_lines
        or sum(line.endswith(_ELLIPSES) for line in document) > _MAX_CUT_LINES * num_lines
    )
