"""Log-likelihood of texts under a factorization order.

    log p(x) = Σ_t log p(x_t | x_j with order[j] < order[t])

The query stream gives every term: it knows the position of a token and what comes before it in
the order, never the token itself. Summed over all texts of one length, p is 1 for any order. The
pseudo log-likelihood, log p(x_t | all x_j with j ≠ t) summed over t, is not a distribution; it
needs one pass a token.

A causal model (`objective.kind=causal`) has never trained its query stream. Its terms come from
the content stream at the token before, and its only order is from left to right. The first token
of a text follows `<eod>`, the end of the document before. A denoising model has no such terms.

A text longer than `seq_len` is read as in pre-training: windows of `seq_len` tokens that advance
by `reuse_len`, and a memory of the tokens that are no longer in the window. The first window
scores all of its tokens, each later one the `reuse_len` tokens that are new in it, all the others
being known. Windows of a causal model have `reuse_len` tokens, all of them new.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import overload

import numpy as np
import tensorflow as tf

from official.xlnet.configs.choices import SCORING_ORDERS
from official.xlnet.configs.validation import (
    AT_LEAST_1,
    NOT_NEGATIVE,
    require_number,
    require_one_of,
    require_type,
)
from official.xlnet.files.arguments import checks_arguments
from official.xlnet.inference.language_model import (
    bucket,
    for_each,
    loaded,
    require_both_sides,
    require_language_model,
    window_length,
)
from official.xlnet.inference.network.inference_encoder import last_positions
from official.xlnet.inference.network.language_model_network import LanguageModelNetwork
from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
from official.xlnet.tokenization.special_tokens import EOD_ID, PAD_ID
from official.xlnet.tokenization.tokenizer import Tokenizer

# Rows of a batch times their length: bounds the memory of the logits.
_TOKENS_PER_BATCH = 2048


@dataclasses.dataclass(frozen=True)
class Score:
    """Log-likelihood of one text.

    Attributes:
      text: the text.
      pieces: its word pieces.
      log_likelihoods: float64, one for each piece, in nats; means over the orders if random.
    """

    text: str
    pieces: list[str]
    log_likelihoods: np.ndarray

    @property
    def total(self) -> float:
        """Log-likelihood of the text, in nats."""
        return float(self.log_likelihoods.sum())


@overload
def score(
    model: str | XLNetPretrainer,
    texts: str,
    order: str = ...,
    num_orders: int = ...,
    seed: int = ...,
    tokenizer: Tokenizer | None = ...,
) -> Score: ...


@overload
def score(
    model: str | XLNetPretrainer,
    texts: list[str] | tuple[str, ...],
    order: str = ...,
    num_orders: int = ...,
    seed: int = ...,
    tokenizer: Tokenizer | None = ...,
) -> list[Score]: ...


@checks_arguments("model")
def score(
    model: str | XLNetPretrainer, texts, order="left_to_right", num_orders=1, seed=0, tokenizer=None
):
    """Computes the log-likelihood of texts. To score often, create a `Scorer` and keep it.

    Args:
      model: pre-trained model: a model directory, HF folder or TF1 release, or a loaded model.
      texts: a text or a list of texts. An empty text has no tokens, and a total of 0.
      order: `left_to_right`, `random` or `pseudo`; see `Scorer`.
      num_orders: orders drawn for `random`.
      seed: random seed of the orders.
      tokenizer: the tokenizer of a loaded model.

    Returns:
      A `Score` for each text; for a text that is not in a list, its `Score`.

    Raises:
      ConfigError: an argument is out of range, a loaded model comes without its tokenizer, or the
        objective that the model was trained with does not predict this.
      DataError: the model cannot be loaded.
      TypeError: a text is not a string.

    Example:
      >>> score("runs/base", "The cat sat.").total
      -22.4
    """

    def scores(texts: list[str]) -> list[Score]:
        return Scorer(*loaded(model, tokenizer))(texts, order, num_orders, seed)

    return for_each(texts, scores)


class Scorer:
    """A pre-trained model that is ready to score texts.

    Its weights are copied, and a graph is made for each length of text when it is first needed:
    to score often, make one and call it many times.

    Args:
      model: a pre-trained model.
      tokenizer: its tokenizer.

    Raises:
      ConfigError: the model was not trained to predict a token from those before it.

    Example:
      >>> scorer = Scorer(model, tokenizer)
      >>> scorer(["The cat sat."])[0].total
      -22.4
    """

    def __init__(self, model: XLNetPretrainer, tokenizer: Tokenizer):
        require_type("model", model, XLNetPretrainer)
        require_language_model(model.config)
        self._config = model.config
        self._tokenizer = tokenizer
        self._network = LanguageModelNetwork(model, model.config.data.seq_len, with_memory=True)

    def __call__(
        self,
        texts: Sequence[str],
        order: str = "left_to_right",
        num_orders: int = 1,
        seed: int = 0,
    ) -> list[Score]:
        """Returns the log-likelihood of every text, without special tokens around it.

        Args:
          texts: the texts. What one scores does not depend on the others; an empty one has no
            tokens to score.
          order: `left_to_right`; `random`, the mean over `num_orders` orders drawn for every
            text (a lower bound of the log-likelihood under their mixture); or `pseudo`, where
            every token is given all others of its window and the memory.
          num_orders: orders drawn for `random`.
          seed: of the random orders.

        Raises:
          ConfigError: `order` is unknown, or is not `left_to_right` for a causal model;
            `num_orders` is below 1 or `seed` below 0.
        """
        require_one_of("order", order, SCORING_ORDERS)
        require_number("num_orders", num_orders, AT_LEAST_1)
        require_number("seed", seed, NOT_NEGATIVE)
        if order != "left_to_right":
            require_both_sides(self._config, f"score with order={order}")
        encoded = [np.array(self._tokenizer.encode(text), np.int32) for text in texts]
        if order == "pseudo":
            results = [self._each_token(ids) for ids in encoded]
        else:
            draws = num_orders if order == "random" else 1
            rows = [
                (ids, np.random.default_rng([seed, number, draw]) if order == "random" else None)
                for number, ids in enumerate(encoded)
                for draw in range(draws)
            ]
            scored = self._rows_in_order(rows)
            results = [
                np.mean(scored[first : first + draws], axis=0)
                for first in range(0, len(scored), draws)
            ]
        return [
            Score(text, [self._tokenizer.id_to_piece(i) for i in ids], result)
            for text, ids, result in zip(texts, encoded, results, strict=True)
        ]

    def _rows_in_order(
        self, rows: list[tuple[np.ndarray, np.random.Generator | None]]
    ) -> list[np.ndarray]:
        """Scores rows of ids, each in orders of its generator or, without one, left to right."""
        is_causal = self._network.is_causal
        results = [np.zeros(len(ids)) for ids, _ in rows]
        longest_first = sorted(range(len(rows)), key=lambda row: -len(rows[row][0]))
        while longest_first:
            windows = list(self._windows(len(rows[longest_first[0]][0])))
            batch_size = _batch_size(windows[0], len(longest_first))
            batch, longest_first = longest_first[:batch_size], longest_first[batch_size:]
            memory = None
            for window in windows:
                ids = [rows[row][0] for row in batch]
                # Copies of the last row give the batch its static size.
                copies = batch_size - len(batch)
                inputs = _inputs(window, ids + copies * ids[-1:], memory)
                if is_causal:
                    before = [_before(window, row_ids) for row_ids in ids]
                    inputs["previous"] = tf.constant(before + copies * before[-1:], tf.int32)
                else:
                    orders = [_order(window, len(rows[row][0]), rows[row][1]) for row in batch]
                    inputs["order"] = tf.constant(np.stack(orders + copies * orders[-1:]), tf.int32)
                num_new = window.end - window.new
                scored_BP, memory = self._in_order(inputs, num_targets=num_new)
                for row, scored_P in zip(batch, scored_BP.numpy(), strict=False):
                    new = results[row][window.new : window.end]
                    new[:] = scored_P[: len(new)]
        return results

    def _each_token(self, ids: np.ndarray) -> np.ndarray:
        """Pseudo log-likelihoods of one text: every token in a row of its own."""
        result = np.zeros(len(ids))
        memory = None
        for window in self._windows(len(ids)):
            positions = np.arange(window.new, min(window.end, len(ids))) - window.start
            batch_size = _batch_size(window, len(positions))
            for first in range(0, len(positions), batch_size):
                part = positions[first : first + batch_size]
                position_B = np.pad(part, [0, batch_size - len(part)], mode="edge")
                inputs = _inputs(window, batch_size * [ids], memory)
                scored_B = self._given_all_others(inputs, tf.constant(position_B, tf.int32))
                result[window.start + part] = scored_B.numpy()[: len(part)]
            if window.end < len(ids):
                # What the next window remembers has seen every token of this one.
                memory = self._next_memory(_inputs(window, [ids], memory))
        return result

    def _windows(self, num_tokens: int) -> Iterator[_Window]:
        """The windows that a text is read in."""
        length = window_length(self._config)
        advance = self._config.data.reuse_len or length
        if num_tokens <= length:
            yield _Window(0, min(bucket(num_tokens), length), 0)
            return
        yield _Window(0, length, 0)
        for start in range(advance, num_tokens - length + advance, advance):
            yield _Window(start, length, start - advance + length)

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
    def _given_all_others(self, inputs, position_B):
        """Values log p(x_t | x_j for all j ≠ t) of one token t of each row."""
        position_B1 = position_B[:, None]
        order_BT = tf.one_hot(position_B, inputs["token_ids"].shape[1], dtype=tf.int32)
        vectors_B1D, _ = self._network.encoder.in_order(
            **inputs, order=order_BT, target_positions=position_B1
        )
        label_B1 = tf.gather(inputs["token_ids"], position_B1, batch_dims=1)
        return self._network.log_likelihoods(vectors_B1D, label_B1)[:, 0]

    @tf.function(autograph=False)
    def _next_memory(self, inputs):
        return self._network.encoder(**inputs).memory


@dataclasses.dataclass(frozen=True)
class _Window:
    """A window of a text: tokens [start, start + length), of which [new, end) are scored.

    Attributes:
      start: its first token.
      length: its static length.
      new: the first token that no earlier window has scored.
    """

    start: int
    length: int
    new: int

    @property
    def end(self) -> int:
        """The token after its last one."""
        return self.start + self.length


def _before(window: _Window, ids: np.ndarray) -> int:
    """The token before a window; `<eod>` before a text."""
    return int(ids[window.start - 1]) if 0 < window.start <= len(ids) else EOD_ID


def _order(window: _Window, num_tokens: int, generator: np.random.Generator | None) -> np.ndarray:
    """Order [length] of a window: left to right, or at random after the known tokens."""
    if generator is None:
        return np.arange(window.length)
    order = np.zeros(window.length, np.int32)
    known = window.new - window.start
    num_new = max(0, min(window.end, num_tokens) - window.new)
    order[known : known + num_new] = 1 + generator.permutation(num_new)
    return order


def _batch_size(window: _Window, num_rows: int) -> int:
    return min(max(1, _TOKENS_PER_BATCH // window.length), bucket(num_rows))


def _inputs(
    window: _Window, ids: list[np.ndarray], memory: tf.Tensor | None
) -> dict[str, tf.Tensor]:
    """Inputs of the network: a window of some texts. `memory` may be of one row, for all."""
    shape = len(ids), window.length
    token_ids_BT = np.full(shape, PAD_ID, np.int32)
    is_padding_BT = np.ones(shape, bool)
    for row, row_ids in enumerate(ids):
        part = row_ids[window.start : window.end]
        token_ids_BT[row, : len(part)] = part
        is_padding_BT[row, : len(part)] = False
    inputs = {"token_ids": tf.constant(token_ids_BT), "is_padding": tf.constant(is_padding_BT)}
    if memory is not None:
        rows = len(ids)
        inputs["memory"] = tf.repeat(memory, rows // memory.shape[1], axis=1)
        inputs["memory_length"] = tf.fill([rows], min(window.start, memory.shape[2]))
    return inputs
