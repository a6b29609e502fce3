"""Sampling of prediction targets and factorization orders for permutation language modeling.

`order` int32 [B, T] is the position of each token in the factorization order, and defines the
attention masks. The content stream at i attends to j if order[j] <= order[i]; the query stream
at a target i attends to j if order[j] < order[i]. Objectives differ in their `order`:

    permutation (XLNet)  `sample_targets_and_order`
    causal (GPT)         `causal_order`
    bidirectional        all 0: fine-tuning, embedding, BERT-style denoising

**Halves.** A window is split at `reuse_len`. Each half has its own targets and order, and every
order of the second half is greater than every order of the first: the second half attends to all
of the first, and the first to nothing of the second. With `reuse_len` 0 there is one half. In a
half whose lowest order is c, context tokens have c; targets, SEP and CLS have c+1, c+2, … in
random order, or from left to right in a share of the rows.

**Spans.** The paper samples n from 1..max_span and makes n consecutive tokens within a context of
n·K tokens targets. Its release samples n with probability proportional to 1/n and proceeds from
left to right, one context at a time, which is sequential and favors some positions. Here n counts
units (words or tokens), and the contexts tile the sequence of units with a random phase, all in
parallel:

* the context that covers unit 0 has n uniform in 1..max_span and covers it at a uniform offset;
* the contexts to its right have independent n with probability proportional to 1/n;
* each has its span of n units at a uniform offset inside.

This is the stationary form of the sequence of contexts: a given point lies in a context of n
with probability proportional to length times frequency, n·K·(1/n), so uniform in n. Hence spans
start everywhere with the same density, p(n) / (K·E[n]) for length n, and a unit u is in a span
of length n if that starts in (u-n, u]: P(u is covered) = Σ n·p(n) / (K·E[n]) = 1/K exactly,
including at the edges, where spans are cut off. K may be fractional: lengths are fixed-point
integers in units of 2**-12, so results do not depend on the rounding of a device. With `max_span`
0 there are no spans: units are drawn independently, as single tokens are in BERT.

**Budget.** Each half has a fixed number of target tokens, P·(its share of the window). Units
are ranked: spans in random order, then all other units in random order. They are taken in that
order while they fit, and in further passes while any unit still fits. So nearly always exactly
P tokens are targets, and words are never split. `target_mask` marks unused slots.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from official.xlnet.configs.data import DataConfig
from official.xlnet.errors import require_config
from official.xlnet.modeling.kernels import stateless_random
from official.xlnet.tokenization.special_tokens import CLS_ID, SEP_ID

_TARGETS = 0  # Stream of `stateless_random` for targets and orders.
_LEFT_TO_RIGHT = 4  # Stream of the rows that are read from left to right; others use 1 to 3.
_TICKS = 1 << 12  # Fixed-point resolution: ticks per unit.
_FILL_PASSES = 4  # Passes over the ranked units that fill the budget.


class Targets(NamedTuple):
    """Targets and factorization order of a batch.

    Attributes:
      order: int32 [B, T], from 0; see the module docstring.
      target_positions: int32 [B, P], ascending; unused slots come last and hold 0.
      target_mask: float32 [B, P], 1 for targets and 0 for unused slots.
    """

    order: tf.Tensor
    target_positions: tf.Tensor
    target_mask: tf.Tensor


@tf.autograph.experimental.do_not_convert  # Has no Python control flow over tensors.
def sample_targets_and_order(
    token_ids: tf.Tensor,
    is_word_start: tf.Tensor,
    can_be_target: tf.Tensor,
    is_reversed: tf.Tensor,
    epoch: tf.Tensor,
    window_id: tf.Tensor,
    *,
    data: DataConfig,
    seed: int,
    left_to_right_share: float = 0.0,
) -> Targets:
    """Samples targets and a factorization order for each row; see the module docstring.

    A word extends from one word start to the next, or to a special token. In reversed text, the
    word start is the last token of its word. Words that are cut off at the edges of the window or
    at the boundary between the halves are never targets.

    SEP and CLS, which occur only as delimiters of the window, have a position in the order; other
    special tokens (eod, eop, unk) are context.

    Args:
      token_ids: int32 [B, T], with T = `data.seq_len`.
      is_word_start: bool [B, T], whether a token starts a word of the unreversed text.
      can_be_target: bool [B, T], False at special tokens.
      is_reversed: bool [B], whether a row is reversed text.
      epoch: int32 [B].
      window_id: int64 [B].
      data: uses `seq_len`, `reuse_len`, `num_predict`, `target_ratio`, `target_unit` and
        `max_span`.
      seed: any integer. Samples depend only on (seed, epoch, window_id).
      left_to_right_share: probability that the order of a row is from left to right.

    Returns:
      Targets and orders.

    Raises:
      ConfigError: `max_span` is so long that contexts overflow 32 bits.

    Example, T 10, reuse_len 4, P 3, of `a b c d | e f SEP g SEP CLS`, every token a word:

        targets           b (first half), f and g (second half)
        order             0 1 0 0   5 7 6 9 10 8
        target_positions  1 5 7
    """
    separator_BT = tf.logical_or(token_ids == SEP_ID, token_ids == CLS_ID)
    if data.target_unit == "word":
        border_BX = word_borders(is_word_start, can_be_target, is_reversed)
    else:
        border_BX = tf.pad(tf.ones_like(can_be_target), [[0, 0], [0, 1]], constant_values=True)
    seq_len, reuse_len, num_predict = data.seq_len, data.reuse_len, data.num_predict
    first_budget = round(num_predict * reuse_len / seq_len)
    halves = [(0, reuse_len, first_budget), (reuse_len, seq_len, num_predict - first_budget)]
    halves = halves if reuse_len else halves[1:]
    sizes = [n for start, end, _ in halves for n in _num_draws(end - start, data)]
    draws = tf.split(
        stateless_random.row_uniform(seed, _TARGETS, epoch, window_id, sum(sizes)), sizes, axis=1
    )
    drawn_B1 = None
    if left_to_right_share:
        drawn_B1 = stateless_random.row_uniform(seed, _LEFT_TO_RIGHT, epoch, window_id, 1)
    is_target, order = [], []
    for half, (start, end, budget) in enumerate(halves):
        spans, units, places = draws[3 * half : 3 * half + 3]
        if drawn_B1 is not None:
            from_left_T = tf.range(end - start, dtype=tf.float32) / seq_len
            places = tf.where(drawn_B1 < left_to_right_share, from_left_T, places)
        is_target_BT = _sample_targets(
            border_BX[:, start : end + 1], can_be_target[:, start:end], budget, spans, units, data
        )
        has_place_BT = tf.logical_or(is_target_BT, separator_BT[:, start:end])
        lowest = start + half  # The orders of a half with n tokens are at most lowest + n.
        is_target.append(is_target_BT)
        order.append(lowest + _places(has_place_BT, places))
    positions, mask = _positions(tf.concat(is_target, axis=1), num_predict)
    return Targets(tf.concat(order, axis=1), positions, mask)


def causal_order(batch_size: int, seq_len: int) -> tf.Tensor:
    """Factorization order of causal attention, int32 [B, T]: 0, 1, 2, … in each row.

    Args:
      batch_size: B.
      seq_len: T.

    Example:
      >>> causal_order(2, 3).numpy().tolist()
      [[0, 1, 2], [0, 1, 2]]
    """
    return tf.tile(tf.range(seq_len)[tf.newaxis], [batch_size, 1])


def word_borders(
    is_word_start_BT: tf.Tensor, can_be_target_BT: tf.Tensor, is_reversed_B: tf.Tensor
) -> tf.Tensor:
    """Returns whether there is a word boundary right before position i, bool [B, T+1].

    Args:
      is_word_start_BT: bool [B, T], whether a token starts a word of the unreversed text.
      can_be_target_BT: bool [B, T], False at special tokens.
      is_reversed_B: bool [B], whether a row is reversed text.
    """
    edge_B1 = tf.ones_like(is_word_start_BT[:, :1])
    forward_BX = tf.concat([is_word_start_BT, edge_B1], axis=1)
    backward_BX = tf.concat([edge_B1, is_word_start_BT], axis=1)
    special_BT = tf.logical_not(can_be_target_BT)
    around_special_BX = tf.logical_or(
        tf.pad(special_BT, [[0, 0], [0, 1]]), tf.pad(special_BT, [[0, 0], [1, 0]])
    )
    border_BX = tf.where(is_reversed_B[:, tf.newaxis], backward_BX, forward_BX)
    return tf.logical_or(border_BX, around_special_BX)


def _num_contexts(num_units: int, data: DataConfig) -> int:
    """Returns how many contexts cover a half even if all of them have minimal length."""
    return math.ceil(num_units / data.target_ratio) + 1


def _num_draws(num_units: int, data: DataConfig) -> tuple[int, int, int]:
    """Returns how many random numbers a half uses: for spans, for unit ranks, for the order."""
    return 1 + 3 * _num_contexts(num_units, data), num_units, num_units


def _sample_targets(
    border_BX: tf.Tensor,
    can_be_target_BT: tf.Tensor,
    budget: int,
    span_draws: tf.Tensor,
    unit_draws_BU: tf.Tensor,
    data: DataConfig,
) -> tf.Tensor:
    """Samples the targets of one half of T tokens, which has at most U = T units.

    Args:
      border_BX: bool [B, T+1], whether a unit starts (and the previous one ends) at i. If the
        first or last is False, the first or last unit of the half is cut off.
      can_be_target_BT: bool [B, T].
      budget: number of target tokens.
      span_draws: uniform random numbers, float32 [B, 1 + 3·S] in [0, 1), for S contexts.
      unit_draws_BU: uniform random numbers, float32 [B, U] in [0, 1).
      data: uses `target_ratio` and `max_span`.

    Returns:
      Whether each token is a target, bool [B, T].
    """
    num_tokens = can_be_target_BT.shape[1]
    begins_BT = tf.concat([tf.ones_like(border_BX[:, :1]), border_BX[:, 1:-1]], axis=1)
    start_BU = tf.sort(tf.where(begins_BT, tf.range(num_tokens), num_tokens), axis=1)
    end_BU = tf.pad(start_BU[:, 1:], [[0, 0], [0, 1]], constant_values=num_tokens)
    is_whole_BU = tf.logical_and(_take(border_BX, start_BU), _take(border_BX, end_BU))
    is_text_BU = _take(tf.pad(can_be_target_BT, [[0, 0], [0, 1]]), start_BU)
    may_choose_BU = tf.logical_and(is_whole_BU, is_text_BU)
    length_BU = tf.where(may_choose_BU, end_BU - start_BU, 0)

    rank_BU = 1.0 + unit_draws_BU
    if data.max_span:
        in_span_BU, span_rank_BU = _sample_spans(span_draws, num_tokens, data)
        rank_BU = tf.where(in_span_BU, span_rank_BU, rank_BU)
    by_rank_BU = tf.argsort(rank_BU, axis=1, stable=True)
    taken_BU = _take_while_fits(_take(length_BU, by_rank_BU), budget)
    chosen_BU = _take(taken_BU, tf.argsort(by_rank_BU, axis=1))
    unit_BT = tf.cumsum(tf.cast(begins_BT, tf.int32), axis=1) - 1
    return _take(chosen_BU, unit_BT)


def _sample_spans(
    draws: tf.Tensor, num_units: int, data: DataConfig
) -> tuple[tf.Tensor, tf.Tensor]:
    """Samples spans of n units, one in each context of n·K units; contexts tile the sequence.

    Args:
      draws: uniform random numbers, float32 [B, 1 + 3·S] in [0, 1), for S contexts.
      num_units: U.
      data: uses `target_ratio` and `max_span`.

    Returns:
      Whether a unit is in a span, bool [B, U], and the random rank in [0, 1) of the span of its
      context, float32 [B, U]. All units of a span have the same rank.
    """
    num_contexts = _num_contexts(num_units, data)
    ratio = round(data.target_ratio * _TICKS)
    longest = data.max_span * ratio
    require_config(
        longest < 2**24 and longest * num_contexts < 2**31,
        "data.max_span",
        "spans much shorter than a window",
        f"{data.max_span} with data.target_ratio {data.target_ratio} in {num_units} tokens",
    )
    phase_B1, length_BS, place_BS, rank_BS = tf.split(
        draws, [1, num_contexts, num_contexts, num_contexts], axis=1
    )
    lengths = np.arange(1, data.max_span + 1)
    upto = np.cumsum(1.0 / lengths) / np.sum(1.0 / lengths)
    n_BS = 1 + tf.concat(
        [
            _number_reached(length_BS[:, :1], lengths[:-1] / data.max_span),
            _number_reached(length_BS[:, 1:], upto[:-1]),
        ],
        axis=1,
    )
    context_BS = n_BS * ratio
    context_start_BS = tf.cumsum(context_BS, axis=1, exclusive=True) - _below(
        phase_B1, context_BS[:, :1]
    )
    slack_BS = n_BS * (ratio - _TICKS)
    span_start_BS = context_start_BS + _below(place_BS, slack_BS + 1)
    span_end_BS = span_start_BS + n_BS * _TICKS

    unit_U = tf.range(num_units) * _TICKS
    started_BUS = context_start_BS[:, tf.newaxis] <= unit_U[:, tf.newaxis]
    context_BU = tf.reduce_sum(tf.cast(started_BUS, tf.int32), axis=2) - 1
    in_span_BU = tf.logical_and(
        _take(span_start_BS, context_BU) <= unit_U, unit_U < _take(span_end_BS, context_BU)
    )
    return in_span_BU, _take(rank_BS, context_BU)


def _take_while_fits(length_BU: tf.Tensor, budget: int) -> tf.Tensor:
    """Greedily takes units from the left while they fit into the budget, in several passes.

    Args:
      length_BU: number of tokens of each unit, int32 [B, U]; 0 for units that cannot be taken.
      budget: number of tokens to take at most.

    Returns:
      Whether each unit is taken, bool [B, U].
    """
    taken_BU = tf.zeros_like(length_BU, tf.bool)
    for _ in range(_FILL_PASSES):
        left_B1 = budget - tf.reduce_sum(tf.where(taken_BU, length_BU, 0), axis=1, keepdims=True)
        fits_BU = tf.logical_and(tf.logical_not(taken_BU), length_BU <= left_B1)
        wanted_BU = tf.where(fits_BU, length_BU, 0)
        within_BU = tf.cumsum(wanted_BU, axis=1) <= left_B1
        taken_BU = tf.logical_or(taken_BU, tf.logical_and(wanted_BU > 0, within_BU))
    return taken_BU


def _places(has_place_BT: tf.Tensor, draws_BT: tf.Tensor) -> tf.Tensor:
    """Returns 1, 2, … in random order where `has_place_BT` and 0 elsewhere, int32 [B, T]."""
    by_draw_BT = tf.argsort(tf.where(has_place_BT, draws_BT, 2.0), axis=1, stable=True)
    return tf.where(has_place_BT, 1 + tf.argsort(by_draw_BT, axis=1), 0)


def _positions(is_target_BT: tf.Tensor, num_predict: int) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns target positions, int32 [B, P] padded with 0, and their mask, float32 [B, P]."""
    seq_len = is_target_BT.shape[1]
    sorted_BT = tf.sort(tf.where(is_target_BT, tf.range(seq_len), seq_len), axis=1)
    positions_BP = sorted_BT[:, :num_predict]
    is_real_BP = positions_BP < seq_len
    return tf.where(is_real_BP, positions_BP, 0), tf.cast(is_real_BP, tf.float32)


def _number_reached(draws_BS: tf.Tensor, thresholds: np.ndarray) -> tf.Tensor:
    """Returns how many of the thresholds each draw reaches, int32 [B, S]."""
    reached = draws_BS[:, :, tf.newaxis] >= tf.constant(thresholds, tf.float32)
    return tf.reduce_sum(tf.cast(reached, tf.int32), axis=2)


def _below(draws: tf.Tensor, limit: tf.Tensor) -> tf.Tensor:
    """Converts draws in [0, 1) to uniform int32 in 0..limit-1; limit must be below 2**24."""
    return tf.cast(tf.floor(draws * tf.cast(limit, tf.float32)), tf.int32)


def _take(values: tf.Tensor, index: tf.Tensor) -> tf.Tensor:
    return tf.gather(values, index, axis=1, batch_dims=1)
