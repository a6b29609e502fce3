"""Exact match and F1 of SQuAD (Rajpurkar et al., 2016 and 2018): as its `evaluate-v2.0.py`."""

from __future__ import annotations

import collections
import re
import string
from collections.abc import Callable, Sequence

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalized(answer: str) -> str:
    """An answer in lower case, without punctuation, articles and repeated spaces.

    Example:
      >>> normalized("The Nile-Delta,  in Egypt.")
      'niledelta in egypt'
    """
    return " ".join(_ARTICLES.sub(" ", answer.lower().translate(_PUNCTUATION)).split())


def exact_match(answer: str, expected: Sequence[str]) -> float:
    """Returns whether an answer is one of those expected, 1 or 0.

    Args:
      answer: the answer; empty: there is none.
      expected: the possible answers; empty for a question without an answer.
    """
    return _best(answer, expected, lambda a, b: float(a == b))


def word_f1(answer: str, expected: Sequence[str]) -> float:
    """Returns the F1 of the words of an answer beside the nearest of those expected, in [0, 1].

    Args:
      answer: the answer; empty: there is none.
      expected: the possible answers; empty for a question without an answer.
    """
    return _best(answer, expected, _f1_of_words)


def _best(answer: str, expected: Sequence[str], score: Callable[[str, str], float]) -> float:
    golds = [*filter(None, map(normalized, expected))] or [""]
    return max(score(normalized(answer), gold) for gold in golds)


def _f1_of_words(answer: str, gold: str) -> float:
    words, gold_words = answer.split(), gold.split()
    if not words or not gold_words:
        return float(words == gold_words)
    common = (collections.Counter(words) & collections.Counter(gold_words)).total()
    return 2 * common / (len(words) + len(gold_words))
