"""Tokens that were added to a vocabulary: found in a text before it is split into pieces.

HF's tokenizers cut a text at its added tokens, and tokenize the parts between them as texts of
their own, each with a space before its first word. Here each one is a user-defined piece, its text
between two marks of Unicode's private use, and the text is written so that SentencePiece finds it:

    "see [E1], now"  →  "see ⟨[E1]⟩ , now"  →  ▁see  ▁⟨[E1]⟩  ▁,  ▁now

A vocabulary that removes extra spaces, as SentencePiece does by default, so has no piece of its own
for the space before a token; one that does not has `▁` there, as tokenizers of transformers 4.

A piece whose token has a smaller id than its own is an alias: it stands after all others, does not
count in the vocabulary's size, and becomes that id. So are symbols that are also pieces of the
vocabulary, which may stand inside of words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from google.protobuf import message

from official.xlnet.tokenization.text_cleaning import clean

_IN_TEXT, _IN_CLEANED, _END = "\ue0f0", "\ue0f1", "\ue0f2"
_MARKS = re.compile(f"[{_IN_TEXT}{_IN_CLEANED}{_END}]")
Rules = list[tuple[str, str]]  # Regular expressions and what replaces them, also for RE2.


def piece_of(text: str, is_normalized: bool) -> str:
    """The piece of a token.

    Args:
      text: the token's text as SentencePiece sees it.
      is_normalized: whether the token is looked for in cleaned text.
    """
    return f"▁{_IN_CLEANED if is_normalized else _IN_TEXT}{text}{_END}"


def plain(text: str) -> str:
    """A text or piece without the marks of added tokens."""
    return _MARKS.sub("", text)


def added_pieces(pieces: Iterable[message.Message]) -> dict[int, message.Message]:
    """The pieces of added tokens, by their own place in the vocabulary."""
    return {i: piece for i, piece in enumerate(pieces) if piece.content}


def aliases(pieces: Iterable[message.Message]) -> dict[int, int]:
    """{place of an alias: id of its token}; see above."""
    return {i: piece.id for i, piece in added_pieces(pieces).items() if piece.id != i}


def rules(tokens: Iterable[message.Message], *cleaning: bool) -> tuple[Rules, Rules]:
    """The rules that mark the tokens in a text: those before it is cleaned, and those after.

    Args:
      tokens: the pieces of the tokens.
      *cleaning: arguments of `clean`.
    """
    raw, cleaned = [], []
    for token in tokens:
        if token.is_normalized:
            cleaned.append(clean(token.content, *cleaning))
        else:
            raw.append(token.content)
    before, after = [], []
    if raw:
        before.append((f"({_any_of(raw)})", f"{_IN_TEXT}\\1{_END}"))
    if cleaned:
        marked = f"{_IN_TEXT}[^{_END}]*{_END}"
        after.append((f"({marked}|{_any_of(cleaned)})", f"{_IN_CLEANED}\\1{_END}"))
        after.append((f"{_IN_CLEANED}({marked}){_END}", "\\1"))
    if raw or cleaned:
        begins = f"{_IN_TEXT}{_IN_CLEANED}"
        after.append((f"{_END} ?([^ {begins}])", f"{_END} \\1"))
        after.append((f"([{begins}])", " \\1"))
        after.append((f"^ ([{begins}])", "\\1"))
    return before, after


def _any_of(texts: Sequence[str]) -> str:
    """A pattern of texts; where several match, the longest one is taken."""
    return "|".join(map(re.escape, sorted(texts, key=len, reverse=True)))


def marked(text: str, replacements: Rules) -> str:
    """The text with the marks of rules."""
    for pattern, replacement in replacements:
        text = re.sub(pattern, replacement, text)
    return text
