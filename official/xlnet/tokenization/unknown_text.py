"""Text that the vocabulary lacks: how many of its tokens are `<unk>`, a warning and a limit."""

from __future__ import annotations

from collections.abc import Mapping

from absl import logging

from official.xlnet.errors import DataError

_WARNED_SHARE = 0.01


def check_unknown(counts: Mapping[str, int], source: str, limit: float = 1.0) -> dict[str, float]:
    """Warns if more than 1% of the tokens of a text are `<unk>`.

    Args:
      counts: `tokens` and `unknown_tokens`, as `Tokenizer.counts`.
      source: name of the text, for messages.
      limit: largest share of `<unk>` that is not an error.

    Returns:
      `unknown_tokens`, and `unknown_share`, the share of these in all tokens.

    Raises:
      DataError: the share is above the limit.

    Example:
      >>> check_unknown({"tokens": 400, "unknown_tokens": 2}, "text.txt")
      {'unknown_tokens': 2, 'unknown_share': 0.005}
    """
    tokens, unknown = counts.get("tokens", 0), counts.get("unknown_tokens", 0)
    share = unknown / max(tokens, 1)
    message = (
        f"{source}: {unknown:,} of {tokens:,} tokens ({share:.1%}) are <unk>, as the vocabulary "
        "lacks their characters"
    )
    if share > limit:
        raise DataError(
            f"{message}; expected at most {limit:.1%}: use a vocabulary of such text (and its "
            "data.lowercase and data.keep_accents), or set data.max_unknown=1"
        )
    if share > _WARNED_SHARE:
        logging.warning("%s", message)
    return {"unknown_tokens": unknown, "unknown_share": round(share, 4)}
