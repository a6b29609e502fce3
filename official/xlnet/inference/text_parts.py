"""Parts of a text: the tokens that are given, those that are scored, and those that are hidden."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from official.xlnet.errors import require_data
from official.xlnet.tokenization.blanks import BLANK
from official.xlnet.tokenization.tokenizer import Tokenizer
from official.xlnet.tokenization.unspaced_scripts import begins_unspaced, ends_unspaced

Span = tuple[int, int]  # Start and end in characters of a text.
GIVEN, TARGET, HIDDEN = 0, 1, 2


@dataclasses.dataclass(frozen=True)
class TextParts:
    """Tokens of a text and what each of them is.

    Attributes:
      text: the text.
      ids: int32 [T].
      offsets: start and end of each token in characters.
      role: int [T]: `GIVEN`, `TARGET` or `HIDDEN`, which is neither scored nor attended to.
    """

    text: str
    ids: np.ndarray
    offsets: list[Span]
    role: np.ndarray

    @property
    def targets(self) -> np.ndarray:
        """Positions of the targets, ascending."""
        return np.flatnonzero(self.role == TARGET)


def text_parts(
    tokenizer: Tokenizer,
    text: str,
    given: Sequence[Span] | None = None,
    targets: Sequence[Span] | None = None,
) -> TextParts:
    """Tokenizes a text and finds the tokens of its spans.

    A token belongs to a span that has one of its characters; a token of a target and a given span
    is a target. A token that is only the space before a word belongs to the word.

    Args:
      tokenizer: the tokenizer.
      text: the text.
      given: spans that are given; default: all that is not a target, or nothing without `targets`.
      targets: spans that are scored; default: all that is not given.

    Raises:
      DataError: a span is empty or not in the text, or a given span and a target overlap.

    Example:
      >>> text_parts(tokenizer, "The cat sat.", given=[(0, 7)]).role  # ▁The ▁cat ▁sat .
      array([0, 0, 1, 1])
    """
    ids, offsets = tokenizer.encode_with_offsets(text)
    is_target = _is_in(targets, text, "targets")
    is_given = _is_in(given, text, "given")
    apart = not (is_given & is_target).any()
    require_data(apart, f"{text:.60}", "given spans and targets apart", "an overlap")
    if targets is None:
        is_target = ~is_given
    if given is None:
        is_given = ~is_target
    # One character more, for a space at the end.
    by_character = np.where(is_target, TARGET, np.where(is_given, GIVEN, HIDDEN))
    by_character = np.append(by_character, by_character[-1:] if text else TARGET)
    role = np.zeros(len(ids), int)
    for i, (start, end) in enumerate(offsets):
        roles_of_characters = by_character[start : max(end, start + 1)]
        role[i] = TARGET if TARGET in roles_of_characters else roles_of_characters.min()
    return TextParts(text, np.array(ids, np.int32), offsets, role)


def in_context(text: str, context: str, given: str = "left") -> tuple[str, list[Span]]:
    """Puts a text into its context; returns both together and the spans of the text in it.

    A space stands between the two, unless there is one, or their scripts have none.

    Args:
      text: the text.
      context: what is given.
      given: where it stands: `left` of the text, `right` of it, or `both` with one blank, `____`,
        in which the text is put.

    Raises:
      DataError: `given` is `both` and the context has not one blank.

    Example:
      >>> in_context("sat.", "The cat")
      ('The cat sat.', [(8, 12)])
    """
    before, after = (context, "") if given == "left" else ("", context)
    if given == "both":
        parts = BLANK.split(context)[::2]
        require_data(len(parts) == 2, f"context {context:.60}", "one blank, ____", len(parts) - 1)
        before, after = parts
    else:
        left, right = (before, text) if before else (text, after)
        is_apart = left[-1:].isspace() or right[:1].isspace() or not (left and right)
        is_unspaced = ends_unspaced(left) and begins_unspaced(right)
        space = "" if is_apart or is_unspaced else " "
        before, after = before + space * bool(before), space * bool(after) + after
    span = (len(before), len(before) + len(text))
    return before + text + after, [span] if text else []


def _is_in(spans: Sequence[Span] | None, text: str, name: str) -> np.ndarray:
    """Whether each character of a text is in one of some spans, bool [characters]."""
    result = np.zeros(len(text), bool)
    for start, end in spans or ():
        expected = f"spans (start, end) in a text of {len(text)} characters"
        require_data(0 <= start < end <= len(text), name, expected, (start, end))
        result[start:end] = True
    return result
