"""Surprisal of words: the log-likelihoods of their pieces, put together."""

from __future__ import annotations

import dataclasses
import fractions
import itertools
import math
import re
from collections.abc import Sequence
from typing import Annotated, Any

from official.xlnet.configs.choices import PUNCTUATION, UNITS
from official.xlnet.configs.registry import PUBLIC_NAMES
from official.xlnet.files.public import public
from official.xlnet.files.schema import OneOf
from official.xlnet.inference.score import Score
from official.xlnet.tokenization.unspaced_scripts import CHARACTERS, WORD
from official.xlnet.tokenization.word_spans import word_spans

# Letters and digits with single marks between them (don't, 1,000), or a mark alone.
_MARKS_ALONE = re.compile(
    rf"[{CHARACTERS}]|[^\W{CHARACTERS}]+(?:['’.,-][^\W{CHARACTERS}]+)*|[^\w\s]"
)


@dataclasses.dataclass(frozen=True)
class Word:
    """A word and its surprisal.

    Attributes:
      number: number of the word among the scored words of the text, from 1.
      word: the word as it stands in the text.
      start: its first character in the text.
      end: the character after its last one.
      pieces: number of its word pieces.
      surprisal: -log p of its pieces together.
      cumulated: surprisal of the text up to its end.
      entropy: sum of the entropies of the distributions that its pieces are predicted from; of one
        piece, the expected surprisal in this context. None unless the score has entropies.
    """

    number: int
    word: str
    start: int
    end: int
    pieces: int
    surprisal: float
    cumulated: float
    entropy: float | None = None


@PUBLIC_NAMES.register("words_of")
@public()
def words_of(
    score: Score | Sequence[Score],
    punctuation: Annotated[str, OneOf(PUNCTUATION)] = "attached",
    unit: Annotated[str, OneOf(UNITS)] = "nats",
) -> list[Any]:
    """Returns the words of a text that has been scored; `cumulated` ends at minus its total.

    Words are separated by spaces. In scripts without spaces, each character is one. A piece belongs
    to the word in which it begins; a word that begins inside a piece is joined to the one before,
    as their probabilities cannot be told apart.

    Args:
      score: the text and the log-likelihoods of its pieces; or a list of them, for a list of words
        of each.
      punctuation: `attached`, with the word that it stands at, or `alone`, each mark a word.
      unit: of surprisal, `nats` or `bits`.

    Raises:
      ConfigError: `punctuation` or `unit` is another word.

    Example:
      >>> [(word.word, word.pieces) for word in words_of(scorer(["The unfit, too."])[0])]
      [('The', 1), ('unfit,', 3), ('too.', 2)]
    """
    if not isinstance(score, Score):
        return [words_of(text_score, punctuation, unit) for text_score in score]
    nats_per_unit = 1.0 if unit == "nats" else math.log(2.0)
    log_p = score.log_likelihoods / nats_per_unit
    entropies = score.entropies / nats_per_unit
    # Sums of all pieces so far without rounding errors that grow with the text.
    sums = [*itertools.accumulate(map(fractions.Fraction, log_p.tolist()))]
    word_pattern = WORD if punctuation == "attached" else _MARKS_ALONE
    words: list[Word] = []
    for (start, end), pieces in word_spans(score.text, score.offsets, word_pattern):
        surprisal, cumulated = -math.fsum(log_p[pieces]), -float(sums[pieces[-1]])
        words.append(
            Word(
                number=len(words) + 1,
                word=score.text[start:end],
                start=start,
                end=end,
                pieces=len(pieces),
                surprisal=surprisal,
                cumulated=cumulated,
                entropy=math.fsum(entropies[pieces]) if len(entropies) else None,
            )
        )
    return words
