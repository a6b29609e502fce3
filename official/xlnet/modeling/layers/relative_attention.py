"""Two-stream relative attention: content rows and query rows through one set of weights.

For query row i and key j (memory, then the window's tokens), with q, k, v, r the projections of
the row, the key's hidden state and the sinusoids of their distance (Transformer-XL, section 3.3;
segments: paper, section 2.5):

    score(i, j) = [(q_i + r_w)·k_j + (q_i + r_r)·r_(i-j) + (q_i + r_s)·seg(i, j)] / √H

and the output of row i is Σ_j softmax_j(score)(i, j) · v_j over the keys that it may see. A
content row and a query row differ in two things only, where the row comes from and which keys
it may see, so both streams run through the same code (paper, section 2.3).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf
import tf_keras

from official.xlnet.configs.registry import ATTENTION_INITS
from official.xlnet.modeling.kernels.attend import (
    Pattern,
    ScoreTerms,
    attend,
    attention_probabilities,
)
from official.xlnet.modeling.kernels.factored_position import FactoredRows, FactoredSinusoids
from official.xlnet.modeling.kernels.matrix_products import from_heads, to_heads
from official.xlnet.modeling.kernels.relative_shift import ConsecutiveRows, TargetRows
from official.xlnet.modeling.kernels.rematerialization import recomputed
from official.xlnet.modeling.kernels.stateless_dropout import dropout_seed_of_call, fold_in
from official.xlnet.modeling.kernels.xla_kernels import fused
from official.xlnet.modeling.layers import relative_position
from official.xlnet.modeling.layers.relative_position import Sinusoids
from official.xlnet.modeling.layers.relative_segment import RelativeSegmentEncoding, biased_query
from official.xlnet.modeling.ops.initializers import normal
from official.xlnet.modeling.ops.legacy_keras import LegacyLayer
from official.xlnet.modeling.ops.shapes import sizes
from official.xlnet.modeling.ops.visibility import TwoStreamMask, named


class KeyValueCache(NamedTuple):
    """Keys and values of C positions, one slot a position, and the projected distances.

    Attributes:
      keys: [B, N, C, H].
      values: [B, N, C, H].
      positions: [1, N, 2C - 1, H], projections of all distances between C positions.
    """

    keys: tf.Tensor
    values: tf.Tensor
    positions: tf.Tensor

    @property
    def num_slots(self) -> int:
        """Number of slots, C."""
        return self.keys.shape[2]

    def write(self, slot_BX: tf.Tensor, key_BNXH: tf.Tensor, value_BNXH: tf.Tensor):
        """The cache with the keys and values of X rows at their slots."""
        batch_size, num_heads, num_rows, _ = sizes(key_BNXH)
        shape = [batch_size, num_heads, num_rows]
        row_BNX = tf.broadcast_to(tf.range(batch_size)[:, None, None], shape)
        head_BNX = tf.broadcast_to(tf.range(num_heads)[:, None], shape)
        slot_BNX = tf.broadcast_to(slot_BX[:, None], shape)
        index_BNX3 = tf.stack([row_BNX, head_BNX, slot_BNX], axis=3)
        return self._replace(
            keys=tf.tensor_scatter_nd_update(self.keys, index_BNX3, key_BNXH),
            values=tf.tensor_scatter_nd_update(self.values, index_BNX3, value_BNXH),
        )


@tf_keras.utils.register_keras_serializable(package="xlnet")
class RelativeBiases(tf_keras.layers.Layer):
    """The three global query biases r_w (content), r_r (position) and r_s (segment), [N, H] each.

    Every layer has its own (`untie_r`), or all layers share one.

    Args:
      num_heads: number of attention heads, N.
      d_head: width of an attention head, H; the width of the hidden states is N·H.
      init_std: standard deviation of the normal initializer.
      attention_init: see `TwoStreamRelativeAttention`.
    """

    def __init__(
        self,
        num_heads: int,
        d_head: int,
        init_std: float = 0.02,
        attention_init: str = "normal",
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.num_heads, self.d_head = num_heads, d_head
        self.init_std, self.attention_init = init_std, attention_init

    def build(self, input_shape=None):
        shape, std = [self.num_heads, self.d_head], self.init_std
        chosen = ATTENTION_INITS[self.attention_init](std, self.num_heads * self.d_head)

        def bias(name):
            return self.add_weight(name, shape, initializer=chosen.get(name) or normal(std))

        self.content, self.position = bias("content_bias"), bias("position_bias")
        self.segment = bias("segment_bias")
        super().build(input_shape)

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "d_head": self.d_head,
            "init_std": self.init_std,
            "attention_init": self.attention_init,
        }


@tf_keras.utils.register_keras_serializable(package="xlnet")
class TwoStreamRelativeAttention(LegacyLayer):
    """Multi-head relative attention of content rows and, if there are any, query rows.

    Keys and values come from memory and content; no gradient flows into memory.

    Args:
      num_heads: number of attention heads, N.
      d_head: width of an attention head, H.
      dropatt: dropout rate of attention probabilities.
      untie_r: whether the layer has its own `RelativeBiases`; else they are passed to `call`.
      attention_type: `bi`, or `uni` where no row attends to a later position.
      init_std: standard deviation of the normal initializer.
      recompute: whether the backward pass computes probabilities again instead of keeping them.
      attention_init: initialization, `normal` or a name of `register_attention_init`.

    Call arguments:
      hidden_states: [B, T + P, D], T content rows, then P query rows (if any).
      mask: a `TwoStreamMask`.
      position_encoding: what `RelativePositionEncoding` returns; not needed with a cache.
      memory: [B, M, D], hidden states of earlier tokens. Default: none.
      is_reversed: bool [B], rows that hold reversed text. Default: none.
      shared_biases: the `RelativeBiases` of all layers, where `untie_r` is False.
      cache: a `KeyValueCache` of C slots, for decoding: the keys and values of the content rows
        are written at their positions, and both streams attend to all slots, the keys of `mask`.
      training: whether dropout is applied.
      dropout_seed: int32 [2], makes dropout a pure function of it. Default: a random seed.
      return_attention_scores: whether to return the content stream's attention probabilities.

    Returns:
      Attention output before the residual, [B, T + P, D]. With `cache`, a pair of that and the
      cache with the content rows in it. With `return_attention_scores`, a pair of that and
      float32 [B, N, T, K], before dropout.

    Example:
      >>> hidden_states = tf.random.normal([2, 5, 8])
      >>> attention = TwoStreamRelativeAttention(num_heads=2, d_head=4)
      >>> order = tf.constant([[0, 2, 1, 0, 0], [1, 0, 2, 3, 4]])
      >>> mask = TwoStreamAttentionMask()(hidden_states, order=order)
      >>> attention(hidden_states, mask, RelativePositionEncoding()(hidden_states)).shape
      TensorShape([2, 5, 8])
    """

    def __init__(
        self,
        num_heads: int,
        d_head: int,
        dropatt: float = 0.0,
        untie_r: bool = True,
        attention_type: str = "bi",
        init_std: float = 0.02,
        recompute: bool = False,
        attention_init: str = "normal",
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.num_heads, self.d_head, self.dropatt = num_heads, d_head, dropatt
        self.untie_r, self.attention_type = untie_r, attention_type
        self.init_std, self.recompute = init_std, recompute
        self.attention_init = attention_init
        policy = self.dtype_policy
        self.segment_encoding = RelativeSegmentEncoding(
            num_heads, d_head, init_std, dtype=policy, name="segment_encoding"
        )
        if untie_r:
            self.biases = RelativeBiases(
                num_heads, d_head, init_std, attention_init, dtype=policy, name="biases"
            )

    def build(self, input_shape):
        d_model = input_shape[-1]

        chosen = ATTENTION_INITS[self.attention_init](self.init_std, d_model)

        def kernel(name):
            return self.add_weight(
                name,
                [d_model, self.num_heads, self.d_head],
                initializer=chosen.get(name) or normal(self.init_std),
            )

        self.query_kernel, self.key_kernel = kernel("query_kernel"), kernel("key_kernel")
        self.value_kernel = kernel("value_kernel")
        self.position_kernel = kernel("position_kernel")
        self.output_kernel = kernel("output_kernel")
        self.segment_encoding.build()
        # Checkpoints know the variable by this path.
        self.segment_embedding = self.segment_encoding.segment_embedding
        if self.untie_r:
            self.biases.build()
        super().build(input_shape)

    def call(
        self,
        hidden_states: tf.Tensor,
        mask: TwoStreamMask,
        position_encoding: Sinusoids | FactoredSinusoids | None = None,
        memory: tf.Tensor | None = None,
        is_reversed: tf.Tensor | None = None,
        shared_biases: RelativeBiases | None = None,
        cache: KeyValueCache | None = None,
        training: bool | None = None,
        dropout_seed: tf.Tensor | None = None,
        return_attention_scores: bool = False,
    ):
        mask = named(mask)
        seed = dropout_seed_of_call(training, dropout_seed)
        streams = [mask.content]
        if mask.query.positions.shape[1] != 0:
            streams.append(mask.query)
        counts = [sizes(rows.positions)[1] for rows in streams]
        content_BTD = tf.split(hidden_states, counts, axis=1)[0]
        key_BNKH = self._project_keys(content_BTD, memory, self.key_kernel)
        value_BNKH = self._project_keys(content_BTD, memory, self.value_kernel)
        if cache is None:
            position, factors = self._positions(position_encoding, streams, is_reversed)
        else:
            cache = cache.write(mask.content.positions, key_BNKH, value_BNKH)
            key_BNKH, value_BNKH, position = cache
            factors = [None, None]
        terms = self._query_terms(hidden_states, shared_biases or self.biases, counts, training)
        patterns = self._patterns(counts[0], mask, cache, factors[0] is not None)

        attended = []
        for number, rows in enumerate(streams):  # Each stream draws dropout of its own.
            stream_seed = None if seed is None else fold_in(seed, number)
            attention: Callable = functools.partial(
                self._attend, rows, mask.keys, patterns[number], factors[number], stream_seed
            )
            if self.recompute and training:
                attention = recomputed(attention)
            attended.append(attention(*terms[number], key_BNKH, value_BNKH, position))
        output_BXD = from_heads(tf.concat(attended, axis=2), self.output_kernel)
        if return_attention_scores:
            by_content, by_position, segment = terms[0]
            scores = self._score_terms(
                patterns[0], factors[0], by_content, by_position, segment, key_BNKH, position
            )
            p_BNTK = attention_probabilities(scores, mask.content, mask.keys, patterns[0])
            return output_BXD, p_BNTK
        return output_BXD if cache is None else (output_BXD, cache)

    def new_cache(
        self, hidden_states: tf.Tensor, num_slots: int, position_encoding: Sinusoids
    ) -> KeyValueCache:
        """A cache whose first slots hold the keys and values of content rows 0 … T - 1.

        Args:
          hidden_states: [B, T, D], content rows, T <= C.
          num_slots: number of slots, C.
          position_encoding: sinusoids of the distances between C positions.
        """
        free = [[0, 0], [0, 0], [0, num_slots - hidden_states.shape[1]], [0, 0]]
        return KeyValueCache(
            tf.pad(to_heads(hidden_states, self.key_kernel), free),
            tf.pad(to_heads(hidden_states, self.value_kernel), free),
            self._project_positions(position_encoding, None),
        )

    def _patterns(self, num_tokens, mask: TwoStreamMask, cache, is_factored: bool):
        """Patterns of the content stream and the query stream."""
        causal = self.attention_type == "uni"
        if cache is not None:  # Rows are anywhere among the slots.
            slots = TargetRows(cache.num_slots, cache.num_slots)
            return Pattern(slots, causal), Pattern(slots, causal)
        num_keys = sizes(mask.keys.order)[1]
        if is_factored:
            pattern = Pattern(FactoredRows(num_tokens, num_keys), causal)
            return pattern, pattern
        return (
            Pattern(ConsecutiveRows(num_tokens, num_keys), causal),
            Pattern(TargetRows(num_tokens, num_keys), causal),
        )

    def _query_terms(self, hidden_states, biases: RelativeBiases, counts, training):
        """For each stream (q + r_w) / √H, (q + r_r) / √H and the segment term."""
        query_BNXH = to_heads(hidden_states, self.query_kernel)
        biased = (fused if training else functools.partial)(biased_query, self.d_head)
        terms = (
            biased(query_BNXH, tf.cast(biases.content, query_BNXH.dtype)),
            biased(query_BNXH, tf.cast(biases.position, query_BNXH.dtype)),
            self.segment_encoding(query_BNXH, biases.segment, training=training),
        )
        return list(zip(*(tf.split(term, counts, axis=2) for term in terms), strict=True))

    def _score_terms(self, pattern, factors, by_content, by_position, segment, key, position):
        content = tf.matmul(by_content, key, transpose_b=True)
        scores = pattern.distances.scores if factors is None else factors.scores
        return ScoreTerms(content, scores(by_position, position), segment)

    def _attend(
        self,
        rows,
        keys,
        pattern,
        factors,
        seed,
        by_content,
        by_position,
        segment,
        key,
        value,
        position,
    ):
        terms = self._score_terms(pattern, factors, by_content, by_position, segment, key, position)
        return attend(terms, value, rows, keys, pattern, self.dropatt, seed)

    def _project_keys(self, content_BTD, memory_BMD, kernel_DNH):
        projected = to_heads(content_BTD, kernel_DNH)
        if memory_BMD is None:
            return projected
        memory = to_heads(tf.stop_gradient(memory_BMD), kernel_DNH)
        return tf.concat([memory, projected], axis=2)

    def _positions(self, encoding: Sinusoids | FactoredSinusoids | None, streams, is_reversed_B):
        """What positional scores are computed from: a tensor, and the factors of each stream.

        The tensor gets gradients: projected distances, or where there are factors the projection.
        """
        if encoding is None:
            raise ValueError("expected a `position_encoding`, as there is no `cache`")
        encoding = relative_position.named(encoding)
        if isinstance(encoding, Sinusoids):
            return self._project_positions(encoding, is_reversed_B), [None] * len(streams)
        query = streams[1:]  # Content rows are at positions 0 … T - 1.
        factors = [
            encoding.of_rows(position_BX, is_reversed_B)
            for position_BX in (None, *(rows.positions for rows in query))
        ]
        return tf.cast(self.position_kernel, self.compute_dtype), factors

    def _project_positions(self, sinusoids: Sinusoids, is_reversed_B):
        kernels = tf.split(tf.convert_to_tensor(self.position_kernel), 2, axis=0)
        sine_1NRH, cosine_1NRH = (
            to_heads(tf.cast(half, self.compute_dtype)[None], kernel)
            for half, kernel in zip(sinusoids, kernels, strict=True)
        )
        if is_reversed_B is None:
            return sine_1NRH + cosine_1NRH
        direction_B = 1 - 2 * tf.cast(is_reversed_B, tf.int32)  # -1 negates all distances.
        direction = tf.cast(direction_B, self.compute_dtype)[:, None, None, None]
        return cosine_1NRH + direction * sine_1NRH

    def compute_output_shape(self, input_shape):
        return tf.TensorShape(input_shape)

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "d_head": self.d_head,
            "dropatt": self.dropatt,
            "untie_r": self.untie_r,
            "attention_type": self.attention_type,
            "init_std": self.init_std,
            "recompute": self.recompute,
            "attention_init": self.attention_init,
        }
