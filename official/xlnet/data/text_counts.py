"""Counts of texts and of unknown tokens: how they are reported."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from absl import logging

from official.xlnet.errors import DataError
from official.xlnet.files.arguments import STANDARD
from official.xlnet.runtime.progress import Progress

_WARNED_UNKNOWN_SHARE = 0.01
# Counts in the summary line of a verb, and their words.
_SAID = {
    "rows": "rows",
    "texts": "texts",
    "examples": "examples",
    "empty": "empty",
    "only_unknown": "of unknown tokens alone",
    "truncated": "cut",
    "tokens": "tokens",
    "unknown_tokens": "of them unknown",
}


def log_counts(source: str, counts: Mapping[str, Any]) -> None:
    """Logs one line with the numbers of texts read, truncated and skipped in a file.

    Args:
      source: the file; `-` for standard input.
      counts: numbers, some of them by a name of `_SAID`.
    """
    phrases = []
    for name, words in _SAID.items():
        count = counts.get(name)
        if not count:
            continue
        if count == 1:
            words = words.removesuffix("s")
        phrases.append(f"{count:,} {words}")
    Progress(sys.stderr).log_line(f"{_named(source)}: {', '.join(phrases) or 'no text'}")


def _named(source: str) -> str:
    return "standard input" if source == STANDARD else source


def check_unknown(counts: Mapping[str, int], source: str, limit: float = 1.0) -> dict[str, float]:
    """Warns if more than 1% of the tokens or characters of a text are unknown.

    A run of unknown characters is one `<unk>`, so they are counted by themselves, too.

    Args:
      counts: `tokens`, `unknown_tokens`, and others of `Tokenizer.counts`.
      source: name of the text, for messages.
      limit: largest share of unknown tokens, and of unknown characters, that is not an error.

    Returns:
      `unknown_tokens`, and `unknown_share`, the share of these in all tokens.

    Raises:
      DataError: a share is above the limit.

    Example:
      >>> check_unknown({"tokens": 400, "unknown_tokens": 2}, "text.txt")
      {'unknown_tokens': 2, 'unknown_share': 0.005}
    """
    tokens, unknown = counts.get("tokens", 0), counts.get("unknown_tokens", 0)
    share = unknown / max(tokens, 1)
    num_characters = counts.get("unknown_characters", 0)
    share_of_characters = num_characters / max(counts.get("characters", 0), 1)
    message = (
        f"{_named(source)}: {unknown:,} of {tokens:,} tokens ({share:.1%}) are <unk>, as the "
        "vocabulary lacks their characters"
    )
    if num_characters:
        message += f", {share_of_characters:.1%} of all"
    if counts.get("other_case", 0) > num_characters / 2:
        message += (
            "; most are letters of which it has the other case: write them in that case, or set "
            "data.lowercase=true for the vocabulary, too"
        )
    largest_share = max(share, share_of_characters)
    if largest_share > limit:
        raise DataError(
            f"{message}; expected at most {limit:.1%}: use a vocabulary of such text (and its "
            "data.lowercase and data.keep_accents), or set data.max_unknown=1"
        )
    if largest_share > _WARNED_UNKNOWN_SHARE:
        logging.warning("%s", message)
    return {"unknown_tokens": unknown, "unknown_share": round(share, 4)}
