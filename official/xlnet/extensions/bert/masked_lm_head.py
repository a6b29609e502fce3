"""BERT's language-model head: a transform before the tied output layer."""

from __future__ import annotations

import tensorflow as tf
import tf_keras

from official.xlnet.configs.model import ModelConfig
from official.xlnet.modeling.layers.feed_forward import ACTIVATIONS
from official.xlnet.modeling.layers.lm_head import LMHead


@tf_keras.utils.register_keras_serializable(package="xlnet")
class MaskedLMHead(LMHead):
    """logits = layer norm(activation(g W + b))·Eᵀ + bias, float32.

    Its variables have the names of `official.nlp.modeling.layers.MaskedLM`.

    Args:
      vocab_size: V.
      width: D.
      activation: a key of `ACTIVATIONS`.
      init_std: standard deviation of the truncated normal initializer.
      embedding_rows: number of rows of the word embedding; 0: V.
    """

    def __init__(
        self,
        vocab_size: int,
        width: int,
        activation: str = "gelu",
        init_std: float = 0.02,
        embedding_rows: int = 0,
        **kwargs,
    ):
        super().__init__(vocab_size, embedding_rows, **kwargs)
        self.width, self.activation, self.init_std = width, activation, init_std
        self.dense = tf_keras.layers.Dense(
            width,
            ACTIVATIONS[activation],
            kernel_initializer=tf_keras.initializers.TruncatedNormal(stddev=init_std),
            dtype=self.dtype_policy,
            name="dense",
        )
        self.layer_norm = tf_keras.layers.LayerNormalization(
            epsilon=1e-12, dtype="float32", name="layer_norm"
        )

    @classmethod
    def of(cls, model: ModelConfig, **kwargs) -> MaskedLMHead:
        settings = model.d_model, model.activation, model.init_std, model.embedding_rows
        return cls(model.vocab_size, *settings, **kwargs)

    def build(self, input_shape=None):
        for layer in (self.dense, self.layer_norm):
            with tf.name_scope(layer.name):
                layer.build([None, None, self.width])
        super().build(input_shape)

    def call(self, content_BPD: tf.Tensor, embedding_VD: tf.Tensor) -> tf.Tensor:
        """[B, P, D] and the word embedding [V or more, D] → float32 [B, P, V]."""
        transformed_BPD = self.layer_norm(self.dense(content_BPD))
        return super().call(tf.cast(transformed_BPD, self.compute_dtype), embedding_VD)

    def get_config(self):
        return {
            **super().get_config(),
            "width": self.width,
            "activation": self.activation,
            "init_std": self.init_std,
        }
