"""Who may attend to whom: from a factorization order, or a permutation mask, to both streams.

Content row i may attend to key j when order[j] <= order[i]; a query row at target i when
order[j] < order[i]. So both are one rule, key.order <= row.order, where a query row carries the
order of its target minus 1. A permutation mask in the place of an order says it pair by pair.
"""

from __future__ import annotations

import tensorflow as tf

from official.xlnet.modeling.ops.keras import GuardedLayer, keras
from official.xlnet.modeling.ops.shapes import Size, sizes
from official.xlnet.modeling.ops.visibility import (
    ALWAYS_VISIBLE,
    NEVER_VISIBLE,
    Keys,
    MaskedRows,
    OrderedRows,
    Rows,
    TwoStreamMask,
)


@keras.utils.register_keras_serializable(package="xlnet")
class TwoStreamAttentionMask(GuardedLayer):
    """Attention mask of the content and query streams, without a [T, T] matrix.

    Call arguments:
      tokens: [B, T] or [B, T, D], token ids or hidden states; only its first two sizes are used.
      order: int32 [B, T], the factorization order. Default 0: every token attends to every one.
      perm_mask: bool [B, T, T] in the place of `order`, True where row i may not attend to key j
        (HF's convention). Content always attends to itself, a target never does.
      segment_ids: int32 [B, T], any number of segments. Default 0.
      is_padding: bool [B, T], True where there is no token. Default False.
      memory: [B, M, D], hidden states of earlier tokens. Default: none.
      memory_length: int32 [B], how many of the last memory columns belong to the same document.
        Default: the columns of `memory` that are not zero.
      target_positions: int32 [B, P], positions of the query rows, or [1, P] if they are the same
        in all windows. Default: no query rows.

    Returns:
      A `TwoStreamMask`.

    Raises:
      ValueError: both `order` and `perm_mask` are given.

    Example:
      >>> from official.xlnet.modeling.ops.visibility import can_attend
      >>> order = tf.constant([[0, 2, 1]])
      >>> mask = TwoStreamAttentionMask()(order, order=order, target_positions=[[1]])
      >>> can_attend(mask.content, mask.keys, causal=False).numpy().astype(int)
      array([[[1, 0, 0],
              [1, 1, 1],
              [1, 0, 1]]])
      >>> can_attend(mask.query, mask.keys, causal=False).numpy().astype(int)
      array([[[1, 0, 1]]])
    """

    def __init__(self, **kwargs):
        super().__init__(**kwargs, autocast=False)

    def call(
        self,
        tokens: tf.Tensor,
        order: tf.Tensor | None = None,
        perm_mask: tf.Tensor | None = None,
        segment_ids: tf.Tensor | None = None,
        is_padding: tf.Tensor | None = None,
        memory: tf.Tensor | None = None,
        memory_length: tf.Tensor | None = None,
        target_positions: tf.Tensor | None = None,
    ) -> TwoStreamMask:
        if order is not None and perm_mask is not None:
            raise ValueError("expected `order` or `perm_mask`, got both: leave one of them out")
        batch_size, num_tokens = sizes(tokens)[:2]
        num_memory = 0 if memory is None else sizes(memory)[1]
        zeros_BT = tf.zeros([batch_size, num_tokens], tf.int32)
        order_BT = zeros_BT if order is None else tf.cast(order, tf.int32)
        segment_BT = zeros_BT if segment_ids is None else tf.cast(segment_ids, tf.int32)
        position_T = tf.range(num_tokens)

        key_order, key_segment = order_BT, segment_BT
        if is_padding is not None:
            key_order = tf.where(tf.cast(is_padding, tf.bool), NEVER_VISIBLE, order_BT)
        if memory is not None:
            memory_order_BM = _memory_order(memory, memory_length, num_memory)
            key_order = tf.concat([memory_order_BM, key_order], axis=1)
            key_segment = tf.pad(segment_BT, [[0, 0], [num_memory, 0]])
        keys = Keys(key_order, key_segment, tf.range(-num_memory, num_tokens))

        content = OrderedRows(order_BT, segment_BT, zeros_BT + position_T)
        if target_positions is None:
            query = OrderedRows(*(tf.zeros([batch_size, 0], tf.int32) for _ in range(3)))
        else:
            target_BP = tf.cast(target_positions, tf.int32)
            query = OrderedRows(_at(target_BP, order_BT) - 1, _at(target_BP, segment_BT), target_BP)
        if perm_mask is None:
            return TwoStreamMask(content, query, keys)
        return _with_perm_mask(TwoStreamMask(content, query, keys), tf.cast(perm_mask, tf.bool))


def _at(position_BP, x_BT):
    """Elements, or rows, at positions in each window, [B, P, …]."""
    if position_BP.shape[0] == 1:
        return tf.gather(x_BT, position_BP[0], axis=1)
    return tf.gather(x_BT, position_BP, batch_dims=1)


def _memory_order(memory_BMD, memory_length_B, num_memory):
    """int32 [B, M]: ALWAYS_VISIBLE in valid columns of the memory, NEVER_VISIBLE elsewhere."""
    if memory_length_B is None:
        is_valid_BM = tf.reduce_any(memory_BMD != 0, axis=-1)
    else:
        age_M = num_memory - tf.range(num_memory)
        is_valid_BM = age_M <= tf.cast(memory_length_B, tf.int32)[:, None]
    return tf.where(is_valid_BM, ALWAYS_VISIBLE, NEVER_VISIBLE)


def _with_perm_mask(mask: TwoStreamMask, perm_mask_BTT: tf.Tensor) -> TwoStreamMask:
    """The mask whose rows see the keys that `perm_mask` allows, memory and padding as before."""
    content, query, keys = mask
    num_tokens: Size = sizes(content.positions)[1]
    position_T = tf.range(num_tokens)
    target_BP = query.positions
    content_BTT = ~perm_mask_BTT | tf.eye(num_tokens, dtype=tf.bool)
    query_BPT = ~_at(target_BP, perm_mask_BTT)
    query_BPT &= position_T != target_BP[..., None]
    is_real_BK = keys.order != NEVER_VISIBLE
    num_memory = sizes(keys.positions)[0] - num_tokens

    def masked(rows: Rows, visible_BQT: tf.Tensor) -> MaskedRows:
        with_memory = tf.pad(visible_BQT, [[0, 0], [0, 0], [num_memory, 0]], constant_values=True)
        return MaskedRows(with_memory & is_real_BK[:, None], rows.segment_ids, rows.positions)

    return TwoStreamMask(masked(content, content_BTT), masked(query, query_BPT), keys)
