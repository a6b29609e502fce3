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

import dataclasses
import math
import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import tensorflow as tf
from absl import logging

from official.xlnet.configs.registry import ORDER_ESTIMATES, ORDERS
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
    window_length,
)
from official.xlnet.inference.network.inference_encoder import finite, last_positions
from official.xlnet.inference.network.language_model_network import LanguageModelNetwork
from official.xlnet.inference.orders import (
    OF_WINDOWS,
    PERMUTATION,
    Order,
    OrderRequest,
    least_context,
    sort_keys,
)
from official.xlnet.inference.scoring_windows import Row, masked_batches, windows_of
from official.xlnet.inference.text_parts import HIDDEN, TARGET, Span, TextParts, text_parts
from official.xlnet.modeling.models.language_model import LanguageModel
from official.xlnet.runtime.pictures import DisplayMixin, bars_of_pieces
from official.xlnet.tokenization.special_tokens import MASK_ID
from official.xlnet.tokenization.tokenizer import Tokenizer

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Score(DisplayMixin):
    """Log-likelihood of one text, or of its targets.

    Attributes:
      text: the text.
      pieces: its word pieces, or the word pieces of its targets.
      log_likelihoods: float64, one for each piece, in nats; means over the orders if random.
      offsets: start and end of each piece in characters of the text.
      order_totals: float64, the log-likelihood under each of the random orders; else empty.
    """

    text: str
    pieces: list[str]
    log_likelihoods: np.ndarray
    offsets: list[Span] = dataclasses.field(default_factory=list)
    order_totals: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(0))

    @property
    def total(self) -> float:
        """Log-likelihood of the text, or of its targets, in nats; also `log_likelihood`."""
        return math.fsum(self.log_likelihoods)

    log_likelihood = total  # As in the log-likelihoods of an export.

    def __repr__(self) -> str:
        pieces = f"{len(self.pieces)} piece{'s' * (len(self.pieces) != 1)}"
        return f"Score({self.text!r:.60}, {pieces}, log-likelihood {self.total:.2f} nats)"

    def plot(self) -> Figure:
        """Draws the surprisal of each piece, -log p in nats, as a bar."""
        return bars_of_pieces(self.pieces, -self.log_likelihoods, "surprisal, nats")

    @property
    def standard_error(self) -> float | None:
        """Standard error of `total` over random orders; None for fewer than two."""
        return standard_error(self.order_totals)

    def mixture(self) -> Any:
        """Estimate of the mixture over all orders; None for fewer than two random orders."""
        return ORDER_ESTIMATES["mixture"](self.order_totals)


def standard_error(totals: np.ndarray) -> float | None:
    """Standard error of the mean of some numbers; None for fewer than two."""
    if len(totals) < 2:
        return None
    return float(np.std(totals, ddof=1) / math.sqrt(len(totals)))


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
    order="left_to_right",
    num_orders=1,
    seed=0,
    tokenizer=None,
):
    """Computes the log-likelihood of texts. To score often, or parts of texts, keep a `Scorer`.

    Args:
      model: pre-trained model: a model directory, HF folder or TF1 release, or a loaded model.
      texts: a text or a list of texts. An empty text has no tokens, and a total of 0.
      order: `left_to_right`, `random`, `pseudo`, …, or permutations; see `Scorer`.
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
      num_windows: number of windows that have been scored, to show progress.
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
        self.num_windows = 0
        self._masks = model.config.objective.predicts_masked
        self._has_warned = False
        with_memory = not self._masks and model.config.model.network == "xlnet"
        self._network = LanguageModelNetwork(
            model, model.config.data.seq_len, "float32", with_memory
        )

    def __repr__(self) -> str:
        return f"Scorer({self.config.objective.kind}, {self.tokenizer.vocab_size:,} pieces)"

    def __call__(
        self,
        texts: Sequence[str],
        order: Order = "left_to_right",
        num_orders: int = 1,
        seed: int = 0,
        given: Sequence[Sequence[Span]] | None = None,
        targets: Sequence[Sequence[Span]] | None = None,
        whole_given: bool = False,
    ) -> list[Score]:
        """Returns the log-likelihood of every text, without special tokens around it.

        Args:
          texts: the texts. What one scores does not depend on the others; an empty one has no
            tokens to score.
          order: `left_to_right`, `right_to_left`; `inside_out`, from the middle; `confidence` or
            `entropy`, where the next token is the one that the model is most certain of, by its
            largest probability or its entropy (a pass of the network for each token); `random`, the
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
        spans = [_one_each("given", given, texts), _one_each("targets", targets, texts)]
        parts = [text_parts(self.tokenizer, *each) for each in zip(texts, *spans, strict=True)]
        for each in parts:
            self._require_windows_of(each)
            if name not in OF_WINDOWS:
                self._require_one_window(each.text, len(each.ids), f"order={name}")
        request = OrderRequest(
            parts,
            num_orders,
            seed,
            whole_given,
            config=self.config,
            summary_of_predictions=self.summary_of_predictions,
        )
        keys = sort_keys(order, request)
        pairs = zip(parts, keys, strict=True)
        rows = [(text, of_order) for text, orders in pairs for of_order in orders]
        if self._masks:
            scored = self._masked(rows, name == "pseudo")
        elif name == "pseudo":
            scored = [self._each_token(each) for each in parts]
        else:
            self._warn_of_short_contexts(rows)
            scored = self._rows_in_order(rows, whole_given)
        results, _ = [], finite(scored)
        for number, each in enumerate(parts):
            num_rows = len(keys[number])
            of_orders = np.stack(scored[number * num_rows : (number + 1) * num_rows])
            of_orders = of_orders[:, each.targets]
            totals = of_orders.sum(axis=1) if name == "random" else np.zeros(0)
            pieces = [self.tokenizer.id_to_piece(i) for i in each.ids[each.targets]]
            offsets = [each.offsets[position] for position in each.targets]
            results.append(Score(each.text, pieces, of_orders.mean(axis=0), offsets, totals))
        return results

    score = __call__

    def require_one_window(self, texts: Sequence[str], purpose: str) -> None:
        """Raises `DataError` if a text is longer than a window.

        Args:
          texts: the texts.
          purpose: of one window, for the error.
        """
        with self.tokenizer.uncounted():
            for text in texts:
                self._require_one_window(text, len(self.tokenizer.encode(text)), purpose)

    def _require_one_window(self, text: str, num_tokens: int, purpose: str) -> None:
        expected, longest = f"a text of one window for {purpose}", window_length(self.config)
        got = f"{num_tokens} tokens, more than {longest}"
        require_data(num_tokens <= longest, f"{text:.60}", expected, got)

    def _require_windows_of(self, parts: TextParts) -> None:
        """Raises `DataError` unless the windows can give what is given before the targets."""
        is_causal = self._network.is_causal
        several = len(list(windows_of(self.config, len(parts.ids)))) > 1
        why = "for a causal model" if is_causal else "in a text of several windows"
        expected = f"all of the text before the targets given, and nothing after them, {why}"
        # What is given, then the targets, then what is hidden.
        in_sequence = bool((np.diff(parts.role) >= 0).all())
        can = in_sequence or not (several or is_causal)
        require_data(can, f"{parts.text:.60}", expected, "other spans")

    def _warn_of_short_contexts(self, rows: list[Row]) -> None:
        """Says once how many tokens are scored from fewer tokens than any target in training."""
        least = least_context(self.config)
        num_seen = [np.zeros(0, int)]
        for parts, keys in rows:
            first = next(iter(windows_of(self.config, len(parts.ids))))
            num_seen += [first.ranks(parts, keys)[parts.role[: first.end] == TARGET]]
        total = sum(int((parts.role == TARGET).sum()) for parts, _ in rows)
        short = int((np.concatenate(num_seen) < least).sum())
        if short > total / 10 and not self._has_warned:
            self._has_warned = True
            logging.warning(
                "%d of %d tokens are predicted from fewer than %d others, as no target was in "
                "training (data.num_predict=%d of %d tokens): give a context, or see "
                "docs/any_order.md",
                *(short, total, least, self.config.data.num_predict, self.config.data.seq_len),
            )

    def _rows_in_order(self, rows: list[Row], whole_given: bool) -> list[np.ndarray]:
        """Scores rows of tokens, each in its order."""
        is_causal = self._network.is_causal
        results = [np.zeros(len(parts.ids)) for parts, _ in rows]
        longest_first = sorted(range(len(rows)), key=lambda row: -len(results[row]))
        while longest_first:
            windows = list(windows_of(self.config, len(results[longest_first[0]])))
            batch_size = windows[0].batch_size(len(longest_first))
            batch, longest_first = longest_first[:batch_size], longest_first[batch_size:]
            # Copies of the last row give the batch its static size.
            padded = [rows[row] for row in batch + (batch_size - len(batch)) * batch[-1:]]
            ids, memory = [parts.ids for parts, _ in padded], None
            for window in windows:
                inputs = window.inputs(ids, memory)
                if is_causal:
                    inputs["previous"] = tf.constant([*map(window.token_before, ids)], tf.int32)
                else:
                    orders = [window.order(*row, whole_given) for row in padded]
                    inputs["order"] = tf.constant(np.stack(orders), tf.int32)
                num_new = window.end - window.new
                self.num_windows += len(batch)
                scored_BP, memory = self._in_order(inputs, num_targets=num_new)
                for row, scored_P in zip(batch, scored_BP.numpy(), strict=False):
                    new = results[row][window.new : window.end]
                    new[:] = scored_P[: len(new)]
        return results

    def _each_token(self, parts: TextParts) -> np.ndarray:
        """Pseudo log-likelihoods of one text: every target in a row of its own."""
        result, memory = np.zeros(len(parts.ids)), None
        for window in windows_of(self.config, len(parts.ids)):
            self.num_windows += 1
            role = parts.role[window.start : window.end]
            is_hidden_T = np.pad(role == HIDDEN, [0, window.length - len(role)])
            known = window.num_known
            positions = known + np.flatnonzero(role[known:] == TARGET)
            batch_size = window.batch_size(len(positions))
            for first in range(0, len(positions), batch_size):
                part = positions[first : first + batch_size]
                position_B = np.pad(part, [0, batch_size - len(part)], mode="edge")
                inputs = window.inputs(batch_size * [parts.ids], memory)
                scored_B = self._given_all_others(
                    inputs, tf.constant(position_B, tf.int32), tf.constant(is_hidden_T)
                )
                result[window.start + part] = scored_B.numpy()[: len(part)]
            if window.end < len(parts.ids):
                # What the next window remembers has seen every token of this one.
                memory = self._next_memory(window.inputs([parts.ids], memory))
        return result

    def _masked(self, rows: list[Row], is_pseudo: bool) -> list[np.ndarray]:
        """Scores rows of tokens: each target where it is masked with what follows it."""
        results = [np.zeros(len(parts.ids)) for parts, _ in rows]
        for window, batch in masked_batches(self.config, rows, is_pseudo):
            # Copies of the last row give the batch its static size.
            self.num_windows += len(batch)
            padded = batch + (window.batch_size(len(batch)) - len(batch)) * batch[-1:]
            place_B = tf.constant([token.place for token in padded], tf.int32)
            label_B = tf.constant([rows[t.row][0].ids[t.position] for t in padded], tf.int32)
            inputs = window.inputs([token.token_ids for token in padded])
            scored_B = self._where_masked(inputs, place_B, label_B).numpy()
            for token, scored in zip(batch, scored_B, strict=False):
                results[token.row][token.position] = scored
        return results

    @tf.function(autograph=False)
    def _in_order(self, inputs, num_targets):
        """Values log p(x_t | x_j with order[j] < order[t]) of the last P tokens, and the memory."""
        if self._network.is_causal:
            vectors_BPD, memory = self._network.left_to_right(**inputs)
        else:
            target_1P = last_positions(num_targets, inputs["token_ids"].shape[1])
            vectors_BPD, memory = self._network.encoder.in_order(
                **inputs, target_positions=target_1P
            )
        labels_BP = inputs["token_ids"][:, -num_targets:]
        return self._network.log_likelihoods(vectors_BPD, labels_BP), memory

    @tf.function(autograph=False)
    def summary_of_predictions(self, summarize, token_ids, is_padding, order):
        """Computes a number for each p(· | x_j with order[j] < order[t]), of every token t.

        Args:
          summarize: function from log-likelihoods, float32 [B, T, V], to the numbers; the graph
            is kept for it.
          token_ids: int32 [B, T].
          is_padding: bool [B, T].
          order: int32 [B, T], the factorization order; tokens of the largest one are unknown.

        Returns:
          float32 [B, T].
        """
        if self._masks:
            token_ids = tf.where(order == tf.reduce_max(order), MASK_ID, token_ids)
            vectors_BTD, _ = self._network.encoder(token_ids, is_padding)
        else:
            vectors_BTD, _ = self._network.encoder.in_order(token_ids, is_padding, order)
        return summarize(tf.nn.log_softmax(self._network.logits(vectors_BTD)))

    @tf.function(autograph=False)
    def _given_all_others(self, inputs, position_B, is_hidden_T):
        """Values log p(x_t | x_j for all j ≠ t) of one token t of each row."""
        position_B1 = position_B[:, None]
        order_BT = tf.one_hot(position_B, inputs["token_ids"].shape[1], dtype=tf.int32)
        order_BT += 2 * tf.cast(is_hidden_T, tf.int32)
        vectors_B1D, _ = self._network.encoder.in_order(
            **inputs, order=order_BT, target_positions=position_B1
        )
        label_B1 = tf.gather(inputs["token_ids"], position_B1, batch_dims=1)
        return self._network.log_likelihoods(vectors_B1D, label_B1)[:, 0]

    @tf.function(autograph=False)
    def _next_memory(self, inputs):
        return self._network.encoder(**inputs)[1]

    @tf.function(autograph=False)
    def _where_masked(self, inputs, position_B, label_B):
        """Values log p(label | text in which it is masked) of one token of each row."""
        content_BTD, _ = self._network.encoder(**inputs)
        vectors_BD = tf.gather(content_BTD, position_B, batch_dims=1)
        return self._network.log_likelihoods(vectors_BD, label_B)


def _one_each(
    name: str, spans: Sequence[Sequence[Span]] | None, texts: Sequence[str]
) -> Iterable[Sequence[Span] | None]:
    """The spans of each text."""
    given = [None] * len(texts) if spans is None else spans
    expected = f"a list of spans for each of {len(texts)} texts"
    require(len(given) == len(texts), name, expected, len(given))
    return given
