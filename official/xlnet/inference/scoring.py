"""Log-likelihood of texts, or of parts of them, under a factorization order.

    log p(x) = Σ_t log p(x_t | x_j with order[j] < order[t])

The query stream gives every term: it knows the position of a token and what comes before it in
the order, never the token itself. Summed over all texts of one length, p is 1 for any order. What
is given comes first in the order and is not in the sum, and what is neither given nor scored comes
last: p(B | A) follows the order (A, B). The pseudo log-likelihood, log p(x_t | all x_j with
j ≠ t) summed over t, is not a distribution; it needs one pass a token.

A causal model (`objective.kind=causal`) has never trained its query stream. Its terms come from
the content stream at the token before, and its only order is from left to right. The first token
of a text follows `<eod>`, the end of the document before.

A model of `<mask>` (denoising, diffusion) predicts a token from a text in which it is masked, and
so is all that comes after it in the order: mask, predict, put in, predict the next. This is a
distribution, too, and needs one pass a token.

A text longer than `seq_len` is read as in pre-training: windows of `seq_len` tokens that advance
by `reuse_len`, and a memory of the tokens that are no longer in the window. The first window
scores all of its tokens, each later one the `reuse_len` tokens that are new in it, all the others
being known. Windows of a causal model have `reuse_len` tokens, all of them new. A denoising model
has no memory here.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np
import tensorflow as tf
from absl import logging

from official.xlnet.configs.registry import ORDERS
from official.xlnet.configs.validation import (
    AT_LEAST_1,
    NOT_NEGATIVE,
    require,
    require_number,
    require_type,
)
from official.xlnet.errors import require_data
from official.xlnet.files.arguments import AnyPath
from official.xlnet.files.public import public
from official.xlnet.inference.language_model import (
    PickledByPath,
    for_each,
    loaded,
    require_both_sides,
    require_language_model,
    require_one_window,
    require_windows,
)
from official.xlnet.inference.network.inference_encoder import finite
from official.xlnet.inference.orders import (
    OF_WINDOWS,
    PERMUTATION,
    Order,
    OrderRequest,
    SortKeys,
    least_context,
    sort_keys,
)
from official.xlnet.inference.score import Score
from official.xlnet.inference.scoring_passes import ScoringPasses
from official.xlnet.inference.scoring_windows import Row, windows_of
from official.xlnet.inference.text_parts import TARGET, Span, TextParts, text_parts
from official.xlnet.modeling.models.language_model import LanguageModel
from official.xlnet.tokenization.tokenizer import Tokenizer

_warn_once = functools.cache(logging.warning)


@overload
def score(
    model: str | LanguageModel,
    texts: str,
    order: Order = ...,
    num_orders: int = ...,
    seed: int = ...,
    tokenizer: Tokenizer | None = ...,
) -> Score: ...


@overload
def score(
    model: str | LanguageModel,
    texts: list[str] | tuple[str, ...],
    order: Order = ...,
    num_orders: int = ...,
    seed: int = ...,
    tokenizer: Tokenizer | None = ...,
) -> list[Score]: ...


@public()
def score(
    model: AnyPath | LanguageModel,
    texts,
    order: Any = "left_to_right",
    num_orders: int = 1,
    seed: int = 0,
    tokenizer: Tokenizer | None = None,
):
    """Computes the log-likelihood of texts. To score often, or parts of texts, keep a `Scorer`.

    Args:
      model: pre-trained model: a model directory, HF folder or TF1 release, or a loaded model.
      texts: a text or a list of texts. An empty text has no tokens, and a total of 0.
      order: `left_to_right`, `random`, `pseudo`, …, permutations, or a function that returns them;
        see `Scorer`.
      num_orders: orders drawn for `random`.
      seed: random seed of the orders.
      tokenizer: the tokenizer of a loaded model.

    Returns:
      A `Score` for each text; for a text that is not in a list, its `Score`.

    Raises:
      ConfigError: an argument is out of range, a loaded model comes without its tokenizer, or the
        objective that the model was trained with does not predict this.
      DataError: the model cannot be loaded, or its activations overflow.
      TypeError: a text is not a string.

    Example:
      >>> score("runs/base", "The cat sat.").total
      -22.4
    """

    def scores(texts: list[str]) -> list[Score]:
        return Scorer(*loaded(model, tokenizer, takes_masked=True))(texts, order, num_orders, seed)

    return for_each(texts, scores)


class Scorer(PickledByPath):
    """A pre-trained model that is ready to score texts.

    Its weights are copied, and a graph is made for each length of text when it is first needed:
    to score often, make one and call it many times.

    Args:
      model: a pre-trained model, or its path, by which a scorer is pickled.
      tokenizer: the tokenizer of a loaded model.

    Attributes:
      config: the configuration that the model was pre-trained with.
      tokenizer: the tokenizer.

    Raises:
      ConfigError: the model was not trained to predict tokens.

    Example:
      >>> scorer = Scorer(model, tokenizer)
      >>> scorer(["The cat sat."])[0].total
      -22.4
      >>> scorer.score(["The cat sat."], given=[[(0, 7)]])[0].pieces
      ['▁sat', '.']
    """

    def __init__(
        self, model: str | os.PathLike | LanguageModel, tokenizer: Tokenizer | None = None
    ):
        if isinstance(model, str | os.PathLike):
            self._made_from = (os.fspath(model),)
            model, tokenizer = loaded(os.fspath(model), takes_masked=True)
        require_type("model", model, LanguageModel)
        require_language_model(model.config, takes_masked=True)
        require(tokenizer is not None, "tokenizer", "the loaded model's tokenizer", None)
        self.config = model.config
        self.tokenizer: Any = tokenizer
        self._masks = model.config.objective.predicts_masked
        self._passes = ScoringPasses(model)

    def __repr__(self) -> str:
        return f"Scorer({self.config.objective.kind}, {self.tokenizer.vocab_size:,} pieces)"

    @property
    def num_windows(self) -> int:
        """Number of windows that have been scored, to show progress."""
        return self._passes.num_windows

    def __call__(
        self,
        texts: Sequence[str],
        order: Order = "left_to_right",
        num_orders: int = 1,
        seed: int = 0,
        given: Sequence[Sequence[Span]] | None = None,
        targets: Sequence[Sequence[Span]] | None = None,
        whole_given: bool = False,
        with_entropies: bool = False,
    ) -> list[Score]:
        """Returns the log-likelihood of every text, without special tokens around it.

        Args:
          texts: the texts. What one scores does not depend on the others; an empty one has no
            tokens to score.
          order: `left_to_right`, `right_to_left`; `inside_out`, from the middle; `confidence` or
            `entropy`, where the next token is the one that the model is most certain of, by its
            largest probability or its entropy (a pass of the network for each token, which attends
            to the tokens before it in their order); `random`, the
            mean over `num_orders` orders (a lower bound of `Score.mixture`); `pseudo`, where every
            token is given all others of its window and the memory; the positions of the tokens in
            the sequence in which they are predicted, a list for all texts or one for each; or a
            function from the token ids of all texts, a list of int32 [T], to such lists. What is
            given comes before the targets in any order. A text of several windows has the order
            within each; only `left_to_right`, `random` and `pseudo` take one.
          num_orders: orders drawn for `random`.
          seed: of the random orders. An order depends on the seed, the number of the draw and the
            length alone: two texts have the same order of the positions that they share.
          given: for each text, spans (start, end) in characters that are given and not scored.
            Default: all that is not a target; without targets, nothing.
          targets: for each text, the spans that are scored. Default: all that is not given. What
            is in neither is hidden from both.
          whole_given: whether the given tokens attend to each other on both sides, as the context
            does in pre-training and generation, and not only to those before them in the order.
            Then log p(A) + log p(B | A) is not log p(A B).
          with_entropies: whether to compute `Score.entropies`, too.

        Raises:
          ConfigError: `order` is unknown, is no permutation of the tokens, or is not
            `left_to_right` for a causal model; `num_orders` is below 1 or `seed` below 0; or there
            is not one item for each text.
          DataError: a span is not in its text; or not all that is given comes before the targets,
            in a text that is longer than a window or for a causal model; or the order needs a text
            of one window.
        """
        require_number("num_orders", num_orders, AT_LEAST_1)
        require_number("seed", seed, NOT_NEGATIVE)
        name = PERMUTATION
        if isinstance(order, str):
            ORDERS.check(order)
            name = order
        if name != "left_to_right" and not self._masks:
            require_both_sides(self.config, f"score with order={name}")
        parts = self._parts(texts, given, targets)
        for text in parts:
            self._require_windows_of(text)
            if name not in OF_WINDOWS:
                require_one_window(self.config, text.text, len(text.ids), f"order={name}")
        request = OrderRequest(
            parts,
            num_orders,
            seed,
            whole_given,
            config=self.config,
            summary_of_predictions=self._passes.summary_of_predictions,
        )
        keys = sort_keys(order, request)
        if name == "pseudo" and not self._masks:
            scored = [[self._passes.each_token(text, with_entropies)] for text in parts]
        else:
            scored = self._scored_in_orders(
                parts,
                keys,
                whole_given,
                is_pseudo=name == "pseudo",
                with_entropies=with_entropies,
            )
        scores = []
        for text, token_scores in zip(parts, scored, strict=True):
            scores.append(self._score_of(text, np.stack(token_scores), name == "random"))
        return scores

    score = __call__

    def summary_of_predictions(
        self,
        summarize: Callable[[tf.Tensor], tf.Tensor],
        token_ids: tf.Tensor,
        is_padding: tf.Tensor,
        order: tf.Tensor,
    ) -> tf.Tensor:
        """Computes numbers for the prediction of each token; see `ScoringPasses`."""
        return self._passes.summary_of_predictions(summarize, token_ids, is_padding, order)

    def _parts(
        self,
        texts: Sequence[str],
        given: Sequence[Sequence[Span]] | None,
        targets: Sequence[Sequence[Span]] | None,
    ) -> list[TextParts]:
        """Tokens of texts, and which of them are given, scored and hidden."""
        given_spans = _for_each_text("given", given, texts)
        target_spans = _for_each_text("targets", targets, texts)
        parts = []
        for text, in_given, in_targets in zip(texts, given_spans, target_spans, strict=True):
            parts.append(text_parts(self.tokenizer, text, in_given, in_targets))
        return parts

    def _scored_in_orders(
        self,
        parts: Sequence[TextParts],
        keys: SortKeys,
        whole_given: bool,
        is_pseudo: bool,
        with_entropies: bool,
    ) -> list[list[np.ndarray]]:
        """Readings of the tokens of each text, for each of its orders; see `ScoringPasses`."""
        rows = []
        for text, orders in zip(parts, keys, strict=True):
            rows += [(text, order) for order in orders]
        if self._masks:
            scored = self._passes.masked(rows, is_pseudo, with_entropies)
        else:
            self._warn_of_short_contexts(rows)
            scored = self._passes.rows_in_order(rows, whole_given, with_entropies)
        remaining = iter(scored)
        return [[next(remaining) for _ in orders] for orders in keys]

    def _score_of(self, text: TextParts, scored: np.ndarray, is_random: bool) -> Score:
        """The score of a text, from the readings [orders, tokens, R] of its tokens."""
        of_targets, *entropies = np.moveaxis(finite(scored)[:, text.targets], 2, 0)
        order_totals = of_targets.sum(axis=1) if is_random else np.zeros(0)
        mean_entropies = entropies[0].mean(axis=0) if entropies else np.zeros(0)
        pieces = [self.tokenizer.id_to_piece(token_id) for token_id in text.ids[text.targets]]
        offsets = [text.offsets[position] for position in text.targets]
        log_likelihoods = of_targets.mean(axis=0)
        return Score(text.text, pieces, log_likelihoods, offsets, order_totals, mean_entropies)

    def require_one_window(
        self, texts: Sequence[str], purpose: str, places: Sequence[str] = ()
    ) -> None:
        """Raises `DataError` if a text is longer than a window.

        Args:
          texts: the texts.
          purpose: of one window, for the error.
          places: where each text is from, for the error.
        """
        require_windows(self.config, self.tokenizer, texts, purpose, places)

    def _require_windows_of(self, parts: TextParts) -> None:
        """Raises `DataError` unless the windows can give what is given before the targets."""
        is_causal = self._passes.is_causal
        several = len(list(windows_of(self.config, len(parts.ids)))) > 1
        why = "for a causal model" if is_causal else "in a text of several windows"
        expected = f"all of the text before the targets given, and nothing after them, {why}"
        # Given tokens come first, then the targets, then hidden tokens.
        in_sequence = bool((np.diff(parts.role) >= 0).all())
        can = in_sequence or not (several or is_causal)
        require_data(can, f"{parts.text:.60}", expected, "other spans")

    def _warn_of_short_contexts(self, rows: list[Row]) -> None:
        """Says once in a process that many tokens have fewer others than any target in training."""
        least = least_context(self.config)
        num_seen = [np.zeros(0, int)]
        for parts, keys in rows:
            first = next(iter(windows_of(self.config, len(parts.ids))))
            num_seen += [first.ranks(parts, keys)[parts.role[: first.end] == TARGET]]
        total = sum(int((parts.role == TARGET).sum()) for parts, _ in rows)
        short = int((np.concatenate(num_seen) < least).sum())
        if short > total / 10:
            _warn_once(
                "these texts are short for the model, which has learned to predict tokens from %d "
                "others or more: probabilities of tokens with fewer are too low; give a context or "
                "compare texts by --order=pseudo (docs/any_order.md#short-contexts)",
                least,
            )


def _for_each_text(
    name: str, spans: Sequence[Sequence[Span]] | None, texts: Sequence[str]
) -> Sequence[Sequence[Span] | None]:
    """The spans of each text; None for each where there are none."""
    if spans is None:
        return [None] * len(texts)
    expected = f"a list of spans for each of {len(texts)} texts"
    require(len(spans) == len(texts), name, expected, len(spans))
    return spans
