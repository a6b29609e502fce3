"""Further factorization orders: from the right, from the middle, and orders that a model chooses.

An order in which the next token is always the one that the model is most certain of is a
distribution, too, as the next position depends only on the tokens before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import tensorflow as tf

from official.xlnet.inference.network.inference_encoder import finite
from official.xlnet.inference.orders import OrderRequest, SortKeys, register_order
from official.xlnet.inference.scoring_windows import windows_of
from official.xlnet.inference.text_parts import GIVEN, HIDDEN, TARGET, TextParts

_UNKNOWN = 1 << 20  # Order of the tokens that have not been predicted yet.


@register_order("right_to_left")
def right_to_left(request: OrderRequest) -> SortKeys:
    """From the last token to the first."""
    return [[-np.arange(len(text.ids))] for text in request.parts]


@register_order("inside_out")
def inside_out(request: OrderRequest) -> SortKeys:
    """From the middle to both ends."""
    keys: SortKeys = []
    for text in request.parts:
        middle = (len(text.ids) - 1) / 2
        keys.append([np.abs(np.arange(len(text.ids)) - middle)])
    return keys


@register_order("confidence")
def confidence(request: OrderRequest) -> SortKeys:
    """Next the token whose distribution has the largest probability."""
    return _most_certain_first(request, largest_log_probability)


@register_order("entropy")
def entropy(request: OrderRequest) -> SortKeys:
    """Next the token whose distribution has the lowest entropy."""
    return _most_certain_first(request, negative_entropy)


def largest_log_probability(log_p: tf.Tensor) -> tf.Tensor:
    """Certainty of distributions log p [..., V]: their largest value."""
    return tf.reduce_max(log_p, axis=-1)


def negative_entropy(log_p: tf.Tensor) -> tf.Tensor:
    """Certainty of distributions log p [..., V]: Σ p log p."""
    return tf.reduce_sum(tf.exp(log_p) * log_p, axis=-1)


def _most_certain_first(
    request: OrderRequest, certainty: Callable[[tf.Tensor], tf.Tensor]
) -> SortKeys:
    """Orders in which the next token is the one that the model is most certain of."""
    parts = request.parts
    keys: SortKeys = [[] for _ in parts]
    waiting = sorted(range(len(parts)), key=lambda text: -len(parts[text].ids))
    while waiting:
        [window] = windows_of(request.config, len(parts[waiting[0]].ids))
        size = window.batch_size(len(waiting))
        batch, waiting = waiting[:size], waiting[size:]
        # Copies of the last text give the batch its static size.
        padded = [parts[text] for text in batch + (size - len(batch)) * batch[-1:]]
        rank_BT, is_open_BT = _given_first(padded, window.length, request.whole_given)
        inputs = window.inputs([text.ids for text in padded])
        rows_B = np.arange(size)
        while is_open_BT.any():
            order_BT = tf.constant(rank_BT, tf.int32)
            summary_BT = request.summary_of_predictions(certainty, **inputs, order=order_BT)
            # Rounded: of equal ones, the first from the left.
            certainty_BT = finite(summary_BT.numpy()).round(4)
            next_B = np.where(is_open_BT, certainty_BT, -np.inf).argmax(axis=1)
            is_done_B = ~is_open_BT.any(axis=1)
            num_known_B = (rank_BT < _UNKNOWN).sum(axis=1)
            rank_BT[rows_B, next_B] = np.where(is_done_B, rank_BT[rows_B, next_B], num_known_B)
            is_open_BT[rows_B, next_B] = False
        for row, text in enumerate(batch):
            keys[text] = [rank_BT[row, : len(parts[text].ids)]]
    return keys


def _given_first(
    texts: Sequence[TextParts], length: int, whole_given: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Order of the given tokens, all others unknown; and which tokens are targets."""
    role_BT = np.full([len(texts), length], HIDDEN)
    for role_T, text in zip(role_BT, texts, strict=True):
        role_T[: len(text.role)] = text.role
    given_BT = np.cumsum(role_BT == GIVEN, axis=1) - 1
    if whole_given:
        given_BT = np.zeros_like(given_BT)
    return np.where(role_BT == GIVEN, given_BT, _UNKNOWN), role_BT == TARGET
