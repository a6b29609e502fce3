"""Where the words of a text stand, and which of its word pieces belong to each of them."""

from __future__ import annotations

import bisect
import itertools
import re
from collections.abc import Iterator, Sequence

from official.xlnet.tokenization.unspaced_scripts import WORD

Span = tuple[int, int]  # Start and end in characters of a text.


def word_spans(
    text: str, offsets: Sequence[Span], word: re.Pattern[str] = WORD
) -> Iterator[tuple[Span, list[int]]]:
    """Yields the span and the pieces of each word that has pieces.

    A piece belongs to the word in which it begins; a word that begins inside a piece is joined to
    the one before.

    Args:
      text: the text.
      offsets: start and end of its pieces, or of some of them.
      word: pattern of a word; by default, words are separated by spaces, and each character of a
        script without spaces is one.
    """
    spans = [match.span() for match in word.finditer(text)]
    starts = [start for start, _ in spans]
    for start, end in offsets:
        del starts[bisect.bisect_right(starts, start) : bisect.bisect_left(starts, end)]
    stops = [bisect.bisect_left(spans, (start,)) for start in starts[1:]]
    ends = [spans[stop - 1][1] for stop in [*stops, len(spans)] if spans]

    def word_of(piece: int) -> int:
        return max(0, bisect.bisect_right(starts, offsets[piece][0]) - 1)

    for index, group in itertools.groupby(range(len(offsets)), word_of):
        pieces = list(group)
        span = (starts[index], ends[index]) if spans else offsets[pieces[0]]
        yield span, pieces
