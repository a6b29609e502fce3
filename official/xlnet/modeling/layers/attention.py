"""Two-stream relative attention as the paper defines it.

With q, k and v the projections of hidden states, and r the projection of the sinusoids of the
distance between a row i and a key j, the score of the two is (Transformer-XL, section 3.3; for
segments: XLNet, section 2.5)

    score(i, j) = [(q_i + r_w)·k_j + (q_i + r_r)·r_(i-j) + (q_i + r_s)·s_ij] / √H

where s_ij is one of two vectors: for keys of the same segment, and for keys of another. The output
of row i is W_o Σ_j softmax_j(score)(i, j) v_j over the keys that it may attend to.

The content stream has a row for each token, the query stream has a row for each target. Both use
the same weights, keys and values; their rows differ in where they come from and in which keys they
may attend to (XLNet, section 2.3).

This is the reference: `modeling.kernels` has faster forms of `attention`, which give equal values
and gradients and are tested against it. It computes whatever they do not take: attention
probabilities, float64, and numbers of tokens that are unknown when the graph is built.

Dimension letters: B batch, T tokens, M memory, K = M + T keys, R = K + T - 1 distances, X rows of a
stream, D width, N heads, H width of a head, S = 2 kinds of segment.
"""

from __future__ import annotations

import tensorflow as tf

from official.xlnet.modeling.kernels.stateless_dropout import dropout, fold_in
from official.xlnet.modeling.ops.attention_weights import AttentionWeights
from official.xlnet.modeling.ops.shapes import Size, sizes
from official.xlnet.modeling.ops.visibility import Keys, Rows, TwoStreamMask, can_attend


def attention(
    hidden_states: tf.Tensor,
    mask: TwoStreamMask,
    sinusoids: tuple[tf.Tensor, tf.Tensor],
    weights: AttentionWeights,
    memory: tf.Tensor | None = None,
    is_reversed: tf.Tensor | None = None,
    causal: bool = False,
    dropout_rate: float = 0.0,
    dropout_seed: tf.Tensor | None = None,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Attention of both streams to the tokens and their memory.

    Args:
      hidden_states: [B, T + P, D], T content rows, then P query rows (if any).
      mask: rows of both streams, and the keys that they may attend to. Attention is computed for
        its content rows, which may be the last ones of T only.
      sinusoids: sines and cosines of the distances M + T - 1 … -(T - 1), [R, D / 2] each.
      weights: the weights of the layer.
      memory: [B, M, D], hidden states of earlier tokens; they get no gradient. Default: none.
      is_reversed: bool [B], rows that hold reversed text. Default: none.
      causal: whether keys at later positions are hidden (`uni` attention).
      dropout_rate: dropout rate of the probabilities.
      dropout_seed: int32 [2], or None for no dropout.

    Returns:
      The output [B, T + P, D], and the probabilities of the content stream before dropout,
      [B, N, T, K]: float32, or float64 for hidden states in float64.
    """
    num_tokens = sizes(mask.keys.order)[1] - (0 if memory is None else sizes(memory)[1])
    content_BTD, query_BPD = hidden_states[:, :num_tokens], hidden_states[:, num_tokens:]
    input_BKD = content_BTD
    if memory is not None:
        input_BKD = tf.concat([tf.stop_gradient(memory), content_BTD], axis=1)
    key_BKNH = tf.einsum("bkd,dnh->bknh", input_BKD, weights.key)
    value_BKNH = tf.einsum("bkd,dnh->bknh", input_BKD, weights.value)
    sinusoid_BRD = _by_direction(sinusoids, is_reversed, sizes(input_BKD)[0], input_BKD.dtype)
    position_BRNH = tf.einsum("brd,dnh->brnh", sinusoid_BRD, weights.position)

    num_unwanted = num_tokens - sizes(mask.content.positions)[1]
    streams = [(content_BTD[:, num_unwanted:], mask.content)]
    if mask.query.positions.shape[1] != 0:
        streams.append((query_BPD, mask.query))
    outputs, probabilities = [], []
    for stream, (input_BXD, rows) in enumerate(streams):
        query_BXNH = tf.einsum("bxd,dnh->bxnh", input_BXD, weights.query)
        score_BNXK = _scores(query_BXNH, key_BKNH, position_BRNH, weights, rows, mask.keys)
        p_BNXK = _softmax(score_BNXK, can_attend(rows, mask.keys, causal))
        probabilities.append(p_BNXK)
        if dropout_seed is not None:  # Each stream has a dropout mask of its own.
            p_BNXK = dropout(p_BNXK, dropout_rate, fold_in(dropout_seed, stream))
        outputs.append(tf.einsum("bnxk,bknh->bxnh", tf.cast(p_BNXK, value_BKNH.dtype), value_BKNH))
    output_BXD = tf.einsum("bxnh,dnh->bxd", tf.concat(outputs, axis=1), weights.output)
    return output_BXD, probabilities[0]


def _scores(query_BXNH, key_BKNH, position_BRNH, weights, rows: Rows, keys: Keys) -> tf.Tensor:
    """The three terms of the scores, [B, N, X, K]."""
    num_keys = sizes(key_BKNH)[1]
    num_tokens = sizes(position_BRNH)[1] - num_keys + 1
    content_BNXK = tf.einsum("bxnh,bknh->bnxk", query_BXNH + weights.content_bias, key_BKNH)
    by_distance_BXNR = tf.einsum(
        "bxnh,brnh->bxnr", query_BXNH + weights.position_bias, position_BRNH
    )
    position_BNXK = relative_shift(by_distance_BXNR, rows.positions, num_tokens, num_keys)
    segment_BNXS = tf.einsum("bxnh,snh->bnxs", query_BXNH + weights.segment_bias, weights.segment)
    is_same_B1XK = (rows.segment_ids[:, :, None] == keys.segment_ids[:, None, :])[:, None]
    segment_BNXK = tf.where(is_same_B1XK, segment_BNXS[..., :1], segment_BNXS[..., 1:])
    scale = query_BXNH.shape[-1] ** -0.5
    return (content_BNXK + position_BNXK + segment_BNXK) * tf.cast(scale, query_BXNH.dtype)


def relative_shift(
    score_BXNR: tf.Tensor, position_BX: tf.Tensor, num_tokens: Size, num_keys: Size
) -> tf.Tensor:
    """Converts scores per distance to scores per key, [B, N, X, K].

    Distance number r is M + T - 1 - r, and key j is at position j - M. So the distance of key j and
    a row at position i, i - (j - M), is number T - 1 - i + j.
    """
    batch_size, num_rows, num_heads, _ = sizes(score_BXNR)
    number_BXK = (num_tokens - 1 - position_BX)[:, :, None] + tf.range(num_keys)
    shape = [batch_size, num_rows, num_heads, num_keys]
    number_BXNK = tf.broadcast_to(number_BXK[:, :, None], shape)
    return tf.einsum("bxnk->bnxk", tf.gather(score_BXNR, number_BXNK, batch_dims=3))


def _softmax(score_BNXK: tf.Tensor, can_attend_BXK: tf.Tensor) -> tf.Tensor:
    """Probabilities of the keys that a row may attend to; 0 in rows that attend to no key."""
    can_attend_B1XK = can_attend_BXK[:, None]
    if score_BNXK.dtype != tf.float64:
        score_BNXK = tf.cast(score_BNXK, tf.float32)
    p_BNXK = tf.nn.softmax(tf.where(can_attend_B1XK, score_BNXK, score_BNXK.dtype.min))
    return tf.where(can_attend_B1XK, p_BNXK, tf.zeros([], p_BNXK.dtype))


def _by_direction(sinusoids, is_reversed_B, batch_size: Size, dtype: tf.DType) -> tf.Tensor:
    """Sinusoids of the distances of every batch row, [B, R, D].

    Reading from right to left negates all distances, and with them their sines.
    """
    sine_RC, cosine_RC = (tf.cast(half, dtype) for half in sinusoids)
    direction_B = tf.ones([batch_size], dtype)
    if is_reversed_B is not None:
        direction_B = tf.where(tf.cast(is_reversed_B, tf.bool), -direction_B, direction_B)
    sine_BRC = direction_B[:, None, None] * sine_RC
    return tf.concat([sine_BRC, tf.broadcast_to(cosine_RC, sizes(sine_BRC))], axis=-1)
