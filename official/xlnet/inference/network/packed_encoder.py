"""The inference network: what `XLNetEncoder` computes without dropout, with less work.

The equations are those of the Keras layers, and a property test holds the two equal; what differs
is the arrangement of weights and products:

* query, key and value kernels are one matrix, and 1/√H is in its query part;
* r = W_r · sinusoid(distance) does not depend on the text: it is stored, not computed;
* the segment term and the padding mask are more columns of query and key, so that one product
  gives the sum. With seg_same left out, which softmax does not see,

      (q_i + r_s)·seg(i, j) = Σ_s -d_i [i in s] · [j in s],   d = (q + r_s)·(seg_diff - seg_same);

* inner rows of the feed-forward part are longer where that is faster, as in a training step;
* the last layer computes only the rows that are asked for.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from official.xlnet.inference.network.stored_weights import StoredMatrix
from official.xlnet.modeling.kernels.matrix_products import inner_width
from official.xlnet.modeling.kernels.relative_shift import ConsecutiveRows
from official.xlnet.modeling.layers.feed_forward import ACTIVATIONS, FeedForward
from official.xlnet.modeling.layers.relative_attention import (
    RelativeBiases,
    TwoStreamRelativeAttention,
)
from official.xlnet.modeling.layers.relative_position import sinusoids
from official.xlnet.modeling.layers.xlnet_block import LAYER_NORM_EPSILON, ResidualNorm, XLNetBlock
from official.xlnet.modeling.networks.xlnet_encoder import XLNetEncoder

_HIDDEN = -1e30  # Added to the score of a key that a row may not attend to.


class PackedOutputs(NamedTuple):
    """Outputs of `PackedEncoder`.

    Attributes:
      vectors: float32 [B, X, D], of the rows that were asked for.
      memory: float32 [L, B, M, D], hidden states for the next window; None without memory.
    """

    vectors: tf.Tensor
    memory: tf.Tensor | None


class PackedEncoder(tf.Module):
    """The XLNet encoder for inference: prediction, scoring, embedding and serving.

    A copy of an `XLNetEncoder`'s weights, in float32 or in fewer bytes; computing is in float32.
    It has no dropout and reads no reversed text.

    Args:
      encoder: a built encoder; its weights are copied.
      max_length: largest number of tokens T of an input.
      num_segments: segment ids are 0 … num_segments - 1, or that of padding. By default as many
        as an input has, which XLA cannot compile.
      storage: how matrices are stored; one of `WEIGHT_STORAGE`.
      with_memory: whether `memory` is taken and returned, with `mem_len` columns.
      num_layers: layers to compute, from the first on; by default all of them.

    Example:
      >>> packed = PackedEncoder(encoder, max_length=512)
      >>> packed(token_ids, is_padding, segment_ids).vectors.shape
      TensorShape([2, 512, 768])
    """

    def __init__(
        self,
        encoder: XLNetEncoder,
        max_length: int,
        num_segments: int | None = None,
        storage: str = "float32",
        with_memory: bool = False,
        num_layers: int | None = None,
    ):
        super().__init__(name="encoder")
        model = encoder.config.model
        self.max_length, self.num_segments = max_length, num_segments
        self._mem_len = model.mem_len if with_memory else 0
        self._reuse_len = encoder.reuse_len
        self.embedding = StoredMatrix(
            encoder.word_embedding.embeddings.numpy(), storage, scale_axis=0
        )
        self._mask_embedding = _constant(encoder.mask_embedding)
        self._is_causal = encoder.config.reads_left_to_right
        table = sinusoids(max_length, self._mem_len, model.d_model, model.clamp_len)
        table_RD = np.concatenate(table, axis=1)
        blocks = encoder.blocks[:num_layers]
        packed = {
            id(block): _PackedBlock(
                block, encoder.shared_biases, table_RD, max_length + self._mem_len, storage
            )
            for block in dict.fromkeys(blocks)
        }
        self._layers = [packed[id(block)] for block in blocks]
        # A Keras layer would be saved with all its training; the graph needs the variables.
        depth = encoder.depth
        self._depth = lambda *arguments: depth(*arguments, training=False)
        self._depth_variables = list(depth.variables)

    def __call__(
        self,
        token_ids: tf.Tensor,
        is_padding: tf.Tensor,
        segment_ids: tf.Tensor | None = None,
        is_target: tf.Tensor | None = None,
        memory: tf.Tensor | None = None,
        memory_length: tf.Tensor | None = None,
        last_only: bool = False,
    ) -> PackedOutputs:
        """Vectors of the content stream; in the place of targets, of the query stream.

        Args:
          token_ids: int32 [B, T], T static and at most `max_length`.
          is_padding: bool [B, T].
          segment_ids: int32 [B, T]; by default all tokens are of segment 0.
          is_target: bool [B, T], tokens to predict from all other tokens, by default none. No row
            attends to them. It is `order` with 1 at targets and 0 elsewhere, at the cost of no
            row more: nothing reads the content row of such a target.
          memory: [L, B, mem_len, D], the memory of the window before.
          memory_length: int32 [B], how many of its last columns are of the same document.
          last_only: whether only the last row is wanted.

        Returns:
          Vectors [B, T, D], [B, 1, D] with `last_only`; and the memory.
        """
        num_tokens = token_ids.shape[1]
        hidden_BTD = self.embedding.rows(token_ids)
        is_hidden_BT = is_padding
        if is_target is not None:
            is_hidden_BT |= is_target
            hidden_BTD = tf.where(is_target[..., None], self._mask_embedding, hidden_BTD)
        keys = self._keys(is_hidden_BT, segment_ids, memory, memory_length)
        can_attend_BTT = self._can_attend(num_tokens)
        # Every real token attends to itself at least, but for a target.
        may_be_blind = is_target is not None
        wanted = stream = _stream(0, num_tokens, keys, can_attend_BTT, may_be_blind)
        if last_only:
            wanted = _stream(num_tokens - 1, 1, keys, can_attend_BTT, may_be_blind)
        return self._run(hidden_BTD, keys, [stream], wanted, memory)

    def in_order(
        self,
        token_ids: tf.Tensor,
        is_padding: tf.Tensor,
        order: tf.Tensor,
        num_targets: int | None = None,
        memory: tf.Tensor | None = None,
        memory_length: tf.Tensor | None = None,
    ) -> PackedOutputs:
        """Vectors of the query stream: each token, given those before it in an order.

        Args:
          token_ids: int32 [B, T], T static and at most `max_length`.
          is_padding: bool [B, T].
          order: int32 [B, T], or [1, T] for all rows alike; see `XLNetEncoder`.
          num_targets: P, for the last P tokens only; by default for all of them.
          memory: see `__call__`.
          memory_length: see `__call__`.

        Returns:
          Vectors [B, P, D]; and the memory.
        """
        num_tokens = token_ids.shape[1]
        num_targets = num_targets or num_tokens
        keys = self._keys(is_padding, None, memory, memory_length)
        up_to_own_BTT = self._can_attend(num_tokens, order[:, None, :] <= order[:, :, None])
        before_own_BTT = self._can_attend(num_tokens, order[:, None, :] < order[:, :, None])
        content = _stream(0, num_tokens, keys, up_to_own_BTT, may_be_blind=True)
        query = _stream(num_tokens, num_targets, keys, before_own_BTT, may_be_blind=True)
        content_BTD = self.embedding.rows(token_ids)
        query_BPD = tf.zeros_like(content_BTD[:, :num_targets]) + self._mask_embedding
        hidden_BXD = tf.concat([content_BTD, query_BPD], axis=1)
        return self._run(hidden_BXD, keys, [content, query], query, memory)

    def _run(self, hidden_BXD, keys, streams, wanted, memory) -> PackedOutputs:
        """All layers; the last one for the stream `wanted` alone."""
        layer_inputs = []

        def step(number, hidden_BXD):
            layer_inputs.append(hidden_BXD[:, : keys.num_tokens])
            memory_BMD = None if memory is None else memory[number]
            is_last = number == len(self._layers) - 1
            layer = self._layers[number]
            return layer(hidden_BXD, memory_BMD, keys, [wanted] if is_last else streams)

        hidden_BXD, _ = self._depth(hidden_BXD, step, len(self._layers))
        vectors_BQD = hidden_BXD[:, -wanted.size :]
        return PackedOutputs(vectors_BQD, self._next_memory(memory, layer_inputs))

    def _next_memory(self, memory, layer_inputs):
        """concat(memory_l, h_l[:reuse_len])[-mem_len:] of every layer l, zeros at the front."""
        if not self._mem_len:
            return None
        states_LBKD = tf.stack(layer_inputs)[:, :, : self._reuse_len or None]
        if memory is not None:
            states_LBKD = tf.concat([memory, states_LBKD], axis=2)
        states_LBMD = states_LBKD[:, :, -self._mem_len :]
        missing = self._mem_len - states_LBMD.shape[2]
        return tf.pad(states_LBMD, [[0, 0], [0, 0], [missing, 0], [0, 0]])

    def _keys(self, is_hidden_BT, segment_ids_BT, memory, memory_length) -> _Keys:
        num_tokens, num_memory = is_hidden_BT.shape[1], 0
        is_hidden_BK = is_hidden_BT
        if memory is not None:
            num_memory = memory.shape[2]
            age_M = num_memory - tf.range(num_memory)
            is_hidden_BK = tf.concat([age_M > memory_length[:, None], is_hidden_BT], axis=1)
        segment_BKS = None
        if segment_ids_BT is not None:
            number = self.num_segments or tf.reduce_max(segment_ids_BT) + 1
            segment_BK = tf.pad(segment_ids_BT, [[0, 0], [num_memory, 0]])  # Memory is of 0.
            segment_BKS = tf.one_hot(segment_BK, number)
        return _Keys(num_tokens, num_memory + num_tokens, is_hidden_BK, segment_BKS)

    def _can_attend(self, num_tokens, by_order_BTT=None):
        """Which tokens a row may attend to, bool [B or 1, T, T]; None where it is all of them."""
        if not self._is_causal:
            return by_order_BTT
        by_position_1TT = tf.constant(np.tri(num_tokens, dtype=bool)[None])
        return by_position_1TT if by_order_BTT is None else by_order_BTT & by_position_1TT


class _Keys(NamedTuple):
    """Keys: M of memory, then the T tokens of the window.

    Attributes:
      num_tokens: T.
      num_keys: K = M + T.
      is_hidden_BK: bool [B, K], keys that no row attends to.
      segment_BKS: float32 [B, K, S], one-hot segments; None where there is one alone.
    """

    num_tokens: int
    num_keys: int
    is_hidden_BK: tf.Tensor
    segment_BKS: tf.Tensor | None


class _Stream(NamedTuple):
    """Rows that attend; they stand at the last Q positions of the window.

    Attributes:
      first: index of the first of them among all rows of a layer.
      size: Q.
      mask: float32 [B or 1, 1, Q, K], what is added to scores; None for nothing.
      sees_any: float32 [B, 1, Q or 1, 1], 0 for rows that attend to no key at all, whose output
        is zero; None where there are none of them.
    """

    first: int
    size: int
    mask: tf.Tensor | None
    sees_any: tf.Tensor | None


def _stream(first, size, keys: _Keys, can_attend_BTT, may_be_blind: bool) -> _Stream:
    mask = sees_any = can_attend_BQK = None
    if can_attend_BTT is not None:
        num_memory = keys.num_keys - keys.num_tokens
        can_attend_BQK = tf.pad(
            can_attend_BTT[:, -size:], [[0, 0], [0, 0], [num_memory, 0]], constant_values=True
        )
        mask = tf.where(can_attend_BQK, 0.0, _HIDDEN)[:, None]
    if may_be_blind:
        is_visible_BQK = ~keys.is_hidden_BK[:, None]
        if can_attend_BQK is not None:
            is_visible_BQK &= can_attend_BQK
        sees_any_BQ = tf.reduce_any(is_visible_BQK, axis=-1)
        sees_any = tf.cast(sees_any_BQ, tf.float32)[:, None, :, None]
    return _Stream(first, size, mask, sees_any)


class _PackedBlock(tf.Module):
    """`XLNetBlock`: attention and feed-forward, each with a residual and a layer norm."""

    def __init__(self, block: XLNetBlock, shared_biases, table_RD, max_keys, storage):
        super().__init__(name=block.name)
        self._attention = _PackedAttention(
            block.attention, shared_biases, table_RD, max_keys, storage
        )
        self._attention_norm = _PackedNorm(block.attention_norm)
        self._feed_forward = _PackedFeedForward(block.feed_forward, storage)
        self._feed_forward_norm = _PackedNorm(block.feed_forward_norm)

    def __call__(self, hidden_BXD, memory_BMD, keys: _Keys, streams: list[_Stream]):
        """[B, X, D] → [B, Q, D], the rows of `streams`, which are neighbours."""
        attended_YD = self._attention(hidden_BXD, memory_BMD, keys, streams)
        first, last = streams[0].first, streams[-1].first + streams[-1].size
        width = hidden_BXD.shape[2]
        rows_YD = tf.reshape(hidden_BXD[:, first:last], [-1, width])
        rows_YD = self._attention_norm(rows_YD + attended_YD)
        rows_YD = self._feed_forward_norm(rows_YD + self._feed_forward(rows_YD))
        return tf.reshape(rows_YD, [-1, last - first, width])


class _PackedAttention(tf.Module):
    """Relative attention with packed kernels and stored projections of positions."""

    def __init__(
        self,
        attention: TwoStreamRelativeAttention,
        shared: RelativeBiases,
        table_RD,
        max_keys,
        storage,
    ):
        super().__init__(name="attention")
        biases = attention.biases if attention.untie_r else shared
        self._heads, self._width = attention.num_heads, attention.d_head
        self._max_keys = max_keys
        d_model = attention.query_kernel.shape[0]
        scale = self._width**-0.5

        def matrix(kernel):
            return kernel.numpy().reshape(d_model, -1)

        kernels = [
            matrix(attention.query_kernel) * np.float32(scale),
            matrix(attention.key_kernel),
            matrix(attention.value_kernel),
        ]
        self._kernel = StoredMatrix(np.concatenate(kernels, axis=1), storage)
        self._output_kernel = StoredMatrix(matrix(attention.output_kernel).T, storage)
        self._content_bias = _constant(biases.content, scale)
        self._position_bias = _constant(biases.position, scale)
        segment_2NH = attention.segment_embedding.numpy()
        different_NH = segment_2NH[1] - segment_2NH[0]
        # -d_i = q_i · (-different) + (-r_s · different)
        self._segment_N1H = tf.Variable(-different_NH[:, None], trainable=False)
        segment_bias_N = -np.sum(biases.segment.numpy() * np.float32(scale) * different_NH, axis=1)
        self._segment_bias_N1 = tf.Variable(segment_bias_N[:, None], trainable=False)
        position_RNH = table_RD @ matrix(attention.position_kernel)
        position_NRH = position_RNH.reshape(-1, self._heads, self._width).transpose(1, 0, 2)
        self._position_NRH = tf.Variable(position_NRH, trainable=False, name="positions")

    def __call__(self, hidden_BXD, memory_BMD, keys: _Keys, streams: list[_Stream]):
        """Attention output [Y, D] of the rows of `streams`, text by text."""
        heads, d_head, num_keys = self._heads, self._width, keys.num_keys
        if memory_BMD is not None:
            hidden_BXD = tf.concat([memory_BMD, hidden_BXD], axis=1)
        rows, width = hidden_BXD.shape[1:]
        projected = self._kernel.multiply(tf.reshape(hidden_BXD, [-1, width]))
        projected = tf.reshape(projected, [-1, rows, 3, heads, d_head])
        query, key, value = tf.unstack(tf.transpose(projected, [2, 0, 3, 1, 4]))
        columns = [tf.where(keys.is_hidden_BK, _HIDDEN, 0.0)[..., None]]
        if keys.segment_BKS is not None:
            columns = [keys.segment_BKS, *columns]
        columns = tf.tile(tf.concat(columns, axis=-1)[:, None], [1, heads, 1, 1])
        key = tf.concat([key[:, :, :num_keys], columns], axis=-1)
        value = value[:, :, :num_keys]
        attended = []
        for stream in streams:
            first = num_keys - keys.num_tokens + stream.first
            query_BNQH = query[:, :, first : first + stream.size]
            attended.append(self._attend(query_BNQH, key, value, keys, stream))
        attended_BNXH = attended[0] if len(attended) == 1 else tf.concat(attended, axis=2)
        attended_BXNH = tf.transpose(attended_BNXH, [0, 2, 1, 3])
        return self._output_kernel.multiply(tf.reshape(attended_BXNH, [-1, heads * d_head]))

    def _attend(self, query_BNQH, key, value, keys: _Keys, stream: _Stream):
        by_content = query_BNQH + self._content_bias[:, None]
        terms = [by_content, tf.ones_like(by_content[..., :1])]
        if keys.segment_BKS is not None:
            segment_BNQ = tf.reduce_sum(query_BNQH * self._segment_N1H, axis=-1)
            segment_BNQ += self._segment_bias_N1
            segment_BQS = keys.segment_BKS[:, -stream.size :]
            terms.insert(1, segment_BQS[:, None] * segment_BNQ[..., None])
        scores_BNQK = tf.matmul(tf.concat(terms, axis=-1), key, transpose_b=True)
        distances = ConsecutiveRows(stream.size, keys.num_keys)
        by_position = query_BNQH + self._position_bias[:, None]
        scores = distances.scores(by_position, self._positions(stream.size, keys.num_keys)[None])
        scores_BNQK += distances.to_keys(scores, None)
        if stream.mask is not None:
            scores_BNQK += stream.mask
        attended_BNQH = tf.matmul(tf.nn.softmax(scores_BNQK), value)
        return attended_BNQH if stream.sees_any is None else attended_BNQH * stream.sees_any

    def _positions(self, num_rows, num_keys):
        """Keys [N, K + Q - 1, H] of the distances K - 1 … -(Q - 1)."""
        first = self._max_keys - num_keys
        return self._position_NRH[:, first : first + num_keys + num_rows - 1]


class _PackedFeedForward(tf.Module):
    def __init__(self, layer: FeedForward, storage):
        super().__init__(name="feed_forward")
        extra = inner_width(layer.d_inner) - layer.d_inner
        inner_DF = np.pad(layer.inner_kernel.numpy(), [[0, 0], [0, extra]])
        outer_FD = np.pad(layer.outer_kernel.numpy(), [[0, extra], [0, 0]])
        self._inner, self._outer = StoredMatrix(inner_DF, storage), StoredMatrix(outer_FD, storage)
        inner_bias_F = np.pad(layer.inner_bias.numpy(), [0, extra])
        self._inner_bias = tf.Variable(inner_bias_F, trainable=False)
        self._outer_bias = _constant(layer.outer_bias)
        self._activation = ACTIVATIONS[layer.activation]

    def __call__(self, rows_XD):
        inner_XF = tf.nn.bias_add(self._inner.multiply(rows_XD), self._inner_bias)
        outer_XD = self._outer.multiply(self._activation(inner_XF))
        return tf.nn.bias_add(outer_XD, self._outer_bias)


class _PackedNorm(tf.Module):
    def __init__(self, layer: ResidualNorm):
        super().__init__(name=layer.name)
        self._gamma, self._beta = _constant(layer.gamma), _constant(layer.beta)

    def __call__(self, x_XD):
        centered_XD = x_XD - tf.reduce_mean(x_XD, axis=-1, keepdims=True)
        variance_X1 = tf.reduce_mean(tf.square(centered_XD), axis=-1, keepdims=True)
        normal_XD = centered_XD * tf.math.rsqrt(variance_X1 + LAYER_NORM_EPSILON)
        return normal_XD * self._gamma + self._beta


def _constant(variable: tf.Variable, scale: float = 1.0) -> tf.Variable:
    return tf.Variable(variable.numpy() * np.float32(scale), trainable=False)
