"""The encoder as it is served: what `XLNetEncoder` computes at inference, with less work.

The equations are those of `attention` and `block`; what differs is the arrangement:

* query, key and value kernels are one matrix, and 1/√H is in its query part;
* r = W_r · sinusoid(distance) does not depend on the text: it is stored, not computed;
* the segment term and the padding mask are more columns of query and key, so that one product
  gives the sum. With seg_same left out, which softmax does not see,

      (q_i + r_s)·seg(i, j) = Σ_s -d_i [i in s] · [j in s],   d = (q + r_s)·(seg_diff - seg_same);

* inner rows of the feed-forward part are longer where that is faster, as in a training step;
* where only the last row of the last layer is asked for, no other is computed there.
"""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from official.xlnet.inference.network.stored_weights import StoredMatrix
from official.xlnet.modeling.layers.feed_forward import ACTIVATIONS, FeedForward, inner_width
from official.xlnet.modeling.layers.relative_attention import (
    RelativeBiases,
    TwoStreamRelativeAttention,
)
from official.xlnet.modeling.layers.relative_position import sinusoids
from official.xlnet.modeling.layers.relative_shift import ConsecutiveRows
from official.xlnet.modeling.layers.xlnet_block import LAYER_NORM_EPSILON, ResidualNorm, XLNetBlock
from official.xlnet.modeling.networks.xlnet_encoder import XLNetEncoder
from official.xlnet.tokenization.special_tokens import SEGMENT_CLS

_HIDDEN = -1e30
_MASKED_WHERE = {"padding": 0, "later": 1, "own_and_later": 2}


class ServedEncoder(tf.Module):
    """Tokens to vectors, without memory.

    Args:
      encoder: a built encoder; its weights are copied.
      max_length: the most tokens T of an input.
      num_segments: segment ids are 0 … num_segments - 1, or that of padding.
      storage: how matrices are stored; see `weights.STORAGE`.
    """

    def __init__(
        self,
        encoder: XLNetEncoder,
        max_length: int,
        num_segments: int = SEGMENT_CLS + 1,
        storage: str = "float32",
    ):
        super().__init__(name="encoder")
        model = encoder.config.model
        self.max_length, self.num_segments = max_length, num_segments
        self.embedding = StoredMatrix(
            encoder.word_embedding.embeddings.numpy(), storage, scale_axis=0
        )
        self.mask_embedding = _constant(encoder.mask_embedding)
        self._is_causal = model.attention_type == "uni"
        table_RD = np.concatenate(sinusoids(max_length, 0, model.d_model, model.clamp_len), axis=1)
        self._layers = [
            _ServedBlock(block, encoder.shared_biases, table_RD, storage)
            for block in encoder.blocks
        ]

    def __call__(
        self,
        token_ids_BT: tf.Tensor,
        segment_ids_BT: tf.Tensor,
        is_padding_BT: tf.Tensor,
        last_only: bool = False,
    ) -> tf.Tensor:
        """Vectors of the content stream.

        Args:
          token_ids_BT: int32 [B, T], T static and at most `max_length`.
          segment_ids_BT: int32 [B, T].
          is_padding_BT: bool [B, T], padding on the left.
          last_only: whether only the last row is wanted.

        Returns:
          [B, T, D]; [B, 1, D] with `last_only`.
        """
        masks = [self._mask(token_ids_BT.shape[1], 1)] if self._is_causal else [None]
        keys_BTS = self._key_columns(segment_ids_BT, is_padding_BT)
        h_BXD = self.embedding.rows(token_ids_BT)
        for layer in self._layers:
            only = last_only and layer is self._layers[-1]
            h_BXD = layer(h_BXD, keys_BTS, masks, only)
        return h_BXD

    def left_to_right(self, token_ids_BT: tf.Tensor, is_padding_BT: tf.Tensor) -> tf.Tensor:
        """Vectors [B, T, D] of the query stream at every token, given those before it."""
        tokens = token_ids_BT.shape[1]
        masks = [self._mask(tokens, 1), self._mask(tokens, 0)]
        keys_BTS = self._key_columns(tf.zeros_like(token_ids_BT), is_padding_BT)
        content_BTD = self.embedding.rows(token_ids_BT)
        queries_BTD = tf.zeros_like(content_BTD) + self.mask_embedding
        h_BXD = tf.concat([content_BTD, queries_BTD], axis=1)
        # The first real token is given nothing: its rows attend to nothing.
        sees_none_BT = (
            is_padding_BT | tf.pad(is_padding_BT, [[0, 0], [1, 0]], constant_values=True)[:, :-1]
        )
        sees_any_BX = tf.concat([~is_padding_BT, ~sees_none_BT], axis=1)
        sees_any_BX1 = tf.cast(sees_any_BX, tf.float32)[..., None]
        for layer in self._layers:
            h_BXD = layer(h_BXD, keys_BTS, masks, sees_any_BX1=sees_any_BX1)
        return h_BXD[:, tokens:]

    def _key_columns(self, segment_ids_BT, is_padding_BT):
        """[B, T, S + 1]: which segment a key is of, and whether it is hidden."""
        segment_BTS = tf.one_hot(segment_ids_BT, self.num_segments)
        hidden_BT1 = tf.where(is_padding_BT, _HIDDEN, 0.0)[..., None]
        return tf.concat([segment_BTS, hidden_BT1], axis=-1)

    @staticmethod
    def _mask(tokens, first_hidden):
        """[T, T], hugely negative from key i + first_hidden of row i on."""
        hidden = np.arange(tokens) >= np.arange(tokens)[:, None] + first_hidden
        return tf.constant(np.where(hidden, np.float32(_HIDDEN), np.float32(0)))


class _ServedBlock(tf.Module):
    def __init__(self, block: XLNetBlock, shared_biases, table_RD, storage):
        super().__init__(name=block.name)
        self._attention = _ServedAttention(block.attention, shared_biases, table_RD, storage)
        self._attention_norm = _ServedNorm(block.attention_norm)
        self._feed_forward = _ServedFeedForward(block.feed_forward, storage)
        self._feed_forward_norm = _ServedNorm(block.feed_forward_norm)

    def __call__(self, h_BXD, keys_BTS, masks, last_only=False, sees_any_BX1=None):
        attended_YD = self._attention(h_BXD, keys_BTS, masks, last_only, sees_any_BX1)
        rows_BYD = h_BXD[:, -1:] if last_only else h_BXD
        width = h_BXD.shape[2]
        rows_YD = self._attention_norm(tf.reshape(rows_BYD, [-1, width]) + attended_YD)
        rows_YD = self._feed_forward_norm(rows_YD + self._feed_forward(rows_YD))
        return tf.reshape(rows_YD, [-1, rows_BYD.shape[1], width])


class _ServedAttention(tf.Module):
    def __init__(
        self, attention: TwoStreamRelativeAttention, shared: RelativeBiases, table_RD, storage
    ):
        super().__init__(name="attention")
        biases = attention.biases if attention.untie_r else shared
        self._heads, self._width = attention.num_heads, attention.d_head
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

    def __call__(self, h_BXD, keys_BTS, masks, last_only, sees_any_BX1):
        """Attention output [rows, D], rows being those of B texts one after the other."""
        rows, width = h_BXD.shape[1:]
        tokens, heads, d_head = keys_BTS.shape[1], self._heads, self._width
        projected = self._kernel.multiply(tf.reshape(h_BXD, [-1, width]))
        projected = tf.reshape(projected, [-1, rows, 3, heads, d_head])
        query, key, value = tf.unstack(tf.transpose(projected, [2, 0, 3, 1, 4]))
        key, value = key[:, :, :tokens], value[:, :, :tokens]
        columns = tf.tile(keys_BTS[:, None], [1, heads, 1, 1])
        key = tf.concat([key, columns], axis=-1)
        position_NRH = self._positions(tokens)
        attended = []
        for number, mask_TT in enumerate(masks):
            query_BNTH = query[:, :, number * tokens : (number + 1) * tokens]
            if last_only:
                query_BNTH, row_columns = query_BNTH[:, :, -1:], keys_BTS[:, -1:]
            else:
                row_columns = keys_BTS
            by_content = query_BNTH + self._content_bias[:, None]
            segment_BNT = tf.reduce_sum(query_BNTH * self._segment_N1H, axis=-1)
            segment_BNT += self._segment_bias_N1
            row_columns = row_columns[:, None, :, :-1] * segment_BNT[..., None]
            one = tf.ones_like(segment_BNT)[..., None]
            by_content = tf.concat([by_content, row_columns, one], axis=-1)
            scores_BNTK = tf.matmul(by_content, key, transpose_b=True)
            by_position = query_BNTH + self._position_bias[:, None]
            if last_only:
                positions_NTH = position_NRH[None, :, :tokens]
                scores_BNTK += tf.matmul(by_position, positions_NTH, transpose_b=True)
            else:
                distances = ConsecutiveRows(tokens, tokens)
                scores = distances.scores(by_position, position_NRH[None])
                scores_BNTK += distances.to_keys(scores, None)
            if mask_TT is not None:
                scores_BNTK += mask_TT[-1:] if last_only else mask_TT
            attended.append(tf.matmul(tf.nn.softmax(scores_BNTK), value))
        attended_BNXH = attended[0] if len(attended) == 1 else tf.concat(attended, axis=2)
        attended_BXNH = tf.transpose(attended_BNXH, [0, 2, 1, 3])
        if sees_any_BX1 is not None:
            attended_BXNH *= sees_any_BX1[..., None]
        return self._output_kernel.multiply(tf.reshape(attended_BXNH, [-1, heads * d_head]))

    def _positions(self, tokens):
        """Keys [N, 2T - 1, H] of the distances T - 1 … -(T - 1)."""
        center = (self._position_NRH.shape[1] - 1) // 2
        return self._position_NRH[:, center - tokens + 1 : center + tokens]


class _ServedFeedForward(tf.Module):
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


class _ServedNorm(tf.Module):
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
