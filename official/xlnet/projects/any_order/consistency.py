"""How far the factorizations of a text are from each other; 0 for a consistent model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np

from official.xlnet.configs.registry import PUBLIC_NAMES
from official.xlnet.files.arguments import AnyPath
from official.xlnet.files.public import public
from official.xlnet.files.schema import Range
from official.xlnet.inference.language_model import loaded
from official.xlnet.inference.scoring import Scorer
from official.xlnet.modeling.models.language_model import LanguageModel
from official.xlnet.tokenization.tokenizer import Tokenizer


class Consistency(NamedTuple):
    """How far the factorizations of one text are from each other; 0 for a consistent model.

    Both are None for a text of fewer than two tokens, which has one order.

    Attributes:
      deviation: standard deviation of log p over random orders, in nats.
      halves_gap: |log p(A) + log p(B | A) - log p(B) - log p(A | B)| of the two halves A and B of
        the tokens, each from left to right, in nats.
    """

    deviation: float | None
    halves_gap: float | None


@PUBLIC_NAMES.register("consistency")
@public()
def consistency(
    scorer: AnyPath | LanguageModel | Scorer,
    texts: str | Sequence[str],
    num_orders: Annotated[int, Range(2, 10_000)] = 8,
    seed: Annotated[int, Range(0, 2**32 - 1)] = 0,
    tokenizer: Tokenizer | None = None,
) -> Any:
    """Measures how consistent a model is about texts of at least two tokens and at most a window.

    Args:
      scorer: a `Scorer`; or a model, by its path or loaded with its tokenizer.
      texts: a text or a list of texts.
      num_orders: number of random orders, at least 2.
      seed: of the orders.
      tokenizer: the tokenizer of a loaded model.

    Returns:
      A `Consistency` for each text; for a text that is not in a list, its own.

    Raises:
      ConfigError: `num_orders` is below 2, or the model is causal.
      DataError: a text is longer than a window.

    Example:
      >>> consistency(scorer, ["The cat sat on the mat."])[0].halves_gap
      0.61
    """
    if isinstance(texts, str):
        return consistency(scorer, [texts], num_orders, seed, tokenizer)[0]
    if not isinstance(scorer, Scorer):
        scorer = Scorer(*loaded(scorer, tokenizer, takes_masked=True))
    scorer.require_one_window(texts, "consistency")
    with scorer.tokenizer.uncounted():
        scores = scorer(texts, "random", num_orders, seed)
        lengths = [len(score.pieces) for score in scores]
        # log p(A) + log p(B | A) is log p in the order (A, B), and the other sum in (B, A).
        left_first = scorer(texts)
        right_first = scorer(texts, [_second_half_first(length) for length in lengths])
    measured = []
    for length, score, left, right in zip(lengths, scores, left_first, right_first, strict=True):
        if length < 2:
            measured.append(Consistency(None, None))
        else:
            deviation = float(np.std(score.order_totals, ddof=1))
            measured.append(Consistency(deviation, abs(left.total - right.total)))
    return measured


def mean_consistency(measured: Iterable[Consistency]) -> dict[str, Any]:
    """Returns the mean of each field over the texts that have one, None without any.

    Args:
      measured: of each text.

    Returns:
      The means, and `compared_texts`, the number of texts that they are over.

    Example:
      >>> mean_consistency([Consistency(2.0, 0.5), Consistency(None, None)])
      {'deviation': 2.0, 'halves_gap': 0.5, 'compared_texts': 1}
    """
    defined = [values for values in measured if None not in values]
    if not defined:
        return {**Consistency(None, None)._asdict(), "compared_texts": 0}
    means = Consistency(*np.mean(np.array(defined, float), axis=0).tolist())
    return {**means._asdict(), "compared_texts": len(defined)}


def _second_half_first(length: int) -> list[int]:
    """The positions of the second half of tokens, then those of the first.

    Example:
      >>> _second_half_first(5)
      [2, 3, 4, 0, 1]
    """
    middle = length // 2
    return [*range(middle, length), *range(middle)]
