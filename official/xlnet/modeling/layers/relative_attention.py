"""The Keras layer of two-stream relative attention: the weights of `layers.attention`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import tensorflow as tf

from official.xlnet.configs.registry import ATTENTION_INITS
from official.xlnet.modeling.kernels.attention import ProjectedDistances, with_fast_forms
from official.xlnet.modeling.kernels.factored_position import FactoredSinusoids
from official.xlnet.modeling.kernels.matrix_products import Multiplier
from official.xlnet.modeling.kernels.stateless_dropout import dropout_seed_of_call
from official.xlnet.modeling.layers import relative_position
from official.xlnet.modeling.layers.attention import attention
from official.xlnet.modeling.layers.relative_position import Sinusoids
from official.xlnet.modeling.layers.relative_segment import RelativeSegmentEncoding
from official.xlnet.modeling.ops.attention_weights import AttentionWeights
from official.xlnet.modeling.ops.initializers import normal
from official.xlnet.modeling.ops.keras import ConfiguredLayer, GuardedLayer, keras
from official.xlnet.modeling.ops.visibility import TwoStreamMask, named

if TYPE_CHECKING:
    from official.xlnet.modeling.kernels.key_value_cache import KeyValueCache

_attention = with_fast_forms(attention)


@keras.utils.register_keras_serializable(package="xlnet")
class RelativeBiases(ConfiguredLayer):
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
            return self.add_weight(
                name=name, shape=shape, initializer=chosen.get(name) or normal(std)
            )

        self.content, self.position = bias("content_bias"), bias("position_bias")
        self.segment = bias("segment_bias")
        super().build(input_shape)


@keras.utils.register_keras_serializable(package="xlnet")
class TwoStreamRelativeAttention(GuardedLayer):
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
      attention_mask: a `TwoStreamMask`; `mask` is another name of it. Its content rows may be the
        last ones of T only, for which attention is then computed.
      position_encoding: what `RelativePositionEncoding` returns; not needed with a cache.
      memory: [B, M, D], hidden states of earlier tokens. Default: none.
      is_reversed: bool [B], rows that hold reversed text. Default: none.
      shared_biases: the `RelativeBiases` of all layers, where `untie_r` is False.
      cache: a `KeyValueCache` of C slots, for decoding: the keys and values of the content rows
        are written at their positions, and both streams attend to all slots, the mask's keys.
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
        self._stored: Callable[[], tuple[AttentionWeights, ProjectedDistances]] | None = None
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
                name=name,
                shape=[d_model, self.num_heads, self.d_head],
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
        attention_mask: TwoStreamMask,
        position_encoding: Sinusoids | FactoredSinusoids | None = None,
        memory: tf.Tensor | None = None,
        is_reversed: tf.Tensor | None = None,
        shared_biases: RelativeBiases | None = None,
        cache: KeyValueCache | None = None,
        training: bool | None = None,
        dropout_seed: tf.Tensor | None = None,
        return_attention_scores: bool = False,
    ):
        seed = dropout_seed_of_call(training, dropout_seed)
        causal, mask = self.attention_type == "uni", named(attention_mask)
        encoding: tuple | None = position_encoding
        if self._stored is None:
            weights = self.weights_with(shared_biases or self.biases)
        else:
            weights, encoding = self._stored()
        if cache is not None:
            from official.xlnet.modeling.kernels.key_value_cache import cached_attention

            return cached_attention(hidden_states, mask, cache, weights, causal, self.dropatt, seed)
        if encoding is None:
            raise ValueError("expected a `position_encoding`, as there is no `cache`")
        output, probabilities = _attention(
            hidden_states,
            mask,
            relative_position.named(encoding),
            weights,
            memory=memory,
            is_reversed=is_reversed,
            causal=causal,
            dropout_rate=self.dropatt,
            dropout_seed=seed,
            recompute=self.recompute,
            return_probabilities=return_attention_scores,
        )
        return (output, probabilities) if return_attention_scores else output

    def use_stored(self, weights: AttentionWeights, distances: ProjectedDistances) -> None:
        """Computes with stored weights and distances instead of the layer's own, for inference."""
        self._stored = lambda: (weights, distances)  # Keras would wrap the tuples.

    def weights_with(self, biases: RelativeBiases) -> AttentionWeights:
        """The weights, and these biases, in the dtype that is computed in."""
        weights = AttentionWeights(
            self.query_kernel,
            self.key_kernel,
            self.value_kernel,
            self.position_kernel,
            self.output_kernel,
            biases.content,
            biases.position,
            biases.segment,
            self.segment_embedding,
        )
        return AttentionWeights(
            *(x if isinstance(x, Multiplier) else tf.cast(x, self.compute_dtype) for x in weights)
        )
