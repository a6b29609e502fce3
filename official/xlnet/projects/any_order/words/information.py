"""What two words of a text tell about each other, given the rest of the text.

The pointwise mutual information of the words a and b, given the rest c, has two readings:

    log p(b | a, c) - log p(b | c)    =    log p(a | b, c) - log p(a | c)

They are equal for any distribution over texts. The predictions of a trained model are not those of
one distribution: the difference is its inconsistency.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np

from official.xlnet.configs.choices import PUNCTUATION, UNITS
from official.xlnet.configs.registry import PUBLIC_NAMES
from official.xlnet.configs.validation import NOT_NEGATIVE, require_number, require_type
from official.xlnet.files.public import public
from official.xlnet.files.schema import OneOf
from official.xlnet.inference.language_model import require_both_sides
from official.xlnet.inference.score import Score
from official.xlnet.inference.scoring import Scorer
from official.xlnet.inference.text_parts import Span
from official.xlnet.projects.any_order.words import Word, words_of


@dataclasses.dataclass(frozen=True)
class WordPair:
    """Two words of a text.

    Attributes:
      first: number of the first word among those of the text, from 1.
      second: number of the second word.
      first_word: the first word as it stands in the text.
      second_word: the second word.
      information: log p(second | first, rest) - log p(second | rest).
      reversed_information: log p(first | second, rest) - log p(first | rest).
    """

    first: int
    second: int
    first_word: str
    second_word: str
    information: float
    reversed_information: float


@PUBLIC_NAMES.register("mutual_information")
@public()
def mutual_information(
    scorer: Any,
    texts: Sequence[str],
    distance: int = 1,
    punctuation: Annotated[str, OneOf(PUNCTUATION)] = "attached",
    unit: Annotated[str, OneOf(UNITS)] = "nats",
    targets: Sequence[Sequence[Span]] | None = None,
) -> list[list[WordPair]]:
    """Measures the pointwise mutual information of the words of texts, given the rest.

    Every text is scored once for each word, and twice for each pair of words.

    Args:
      scorer: the model, a `Scorer`.
      texts: texts of at most a window.
      distance: largest distance of two words, 1 for neighbors; 0: any.
      punctuation: see `words_of`.
      unit: of information, `nats` or `bits`.
      targets: for each text, spans of characters; pairs are of words in these, and the rest of the
        text is context. Default: all of it.

    Returns:
      For each text, its pairs of words.

    Raises:
      ConfigError: `distance` is below 0, another argument is an unknown word, or the model is
        causal.
      DataError: a text is longer than a window.

    Example:
      >>> [[pair]] = mutual_information(scorer, ["New York"])
      >>> pair.information, pair.reversed_information
      (3.1, 2.8)
    """
    require_type("scorer", scorer, Scorer)
    require_number("distance", distance, NOT_NEGATIVE)
    require_both_sides(scorer.config, "measure mutual information")
    scorer.require_one_window(texts, "mutual information")
    with scorer.tokenizer.uncounted():
        results = []
        for row, text in enumerate(texts):
            spans = [(0, len(text))] if targets is None else targets[row]
            words: list[Word] = []
            for word in _words(scorer, text, punctuation):
                if any(start <= word.start < end for start, end in spans):
                    words.append(dataclasses.replace(word, number=len(words) + 1))
            pairs = []
            for first in words:
                for second in words[first.number :]:
                    if not distance or second.number - first.number <= distance:
                        pairs.append((first, second))
            results.append(_measured(scorer, text, pairs, 1.0 if unit == "nats" else math.log(2)))
    return results


def _words(scorer: Any, text: str, punctuation: str) -> list[Word]:
    """The words of a text and where they stand."""
    ids, offsets = scorer.tokenizer.encode_with_offsets(text)
    return words_of(Score(text, [""] * len(ids), np.zeros(len(ids)), offsets), punctuation)


def _measured(
    scorer: Any, text: str, pairs: Sequence[tuple[Word, Word]], nats_per_unit: float
) -> list[WordPair]:
    """The pairs of a text with their information."""
    # {(the word that is predicted, the word that is hidden, if any): log-likelihood}
    requests = set()
    for first, second in pairs:
        requests |= {(first, None), (second, None), (first, second), (second, first)}
    ordered = sorted(requests, key=lambda words: [0 if w is None else w.number for w in words])
    targets, given = [], []
    for predicted, hidden in ordered:
        apart = [predicted] if hidden is None else [predicted, hidden]
        targets.append([(predicted.start, predicted.end)])
        given.append(_rest(text, apart))
    scores = scorer.score(len(ordered) * [text], targets=targets, given=given, whole_given=True)
    log_p = {words: score.total for words, score in zip(ordered, scores, strict=True)}
    results = []
    for first, second in pairs:
        information = log_p[second, None] - log_p[second, first]
        reversed_information = log_p[first, None] - log_p[first, second]
        results.append(
            WordPair(
                first=first.number,
                second=second.number,
                first_word=first.word,
                second_word=second.word,
                information=information / nats_per_unit,
                reversed_information=reversed_information / nats_per_unit,
            )
        )
    return results


def _rest(text: str, words: Sequence[Word]) -> list[Span]:
    """The spans of a text without some words."""
    spans = []
    start = 0
    for word in sorted(words, key=lambda word: word.start):
        spans.append((start, word.start))
        start = word.end
    spans.append((start, len(text)))
    return [(start, end) for start, end in spans if start < end]
