"""The language-model head, tied to the word embedding, and the lookup of tokens in it."""

from __future__ import annotations

import tensorflow as tf

from official.xlnet.configs.model import ModelConfig
from official.xlnet.modeling.kernels.product_type import multiply
from official.xlnet.modeling.ops.keras import ConfiguredLayer, keras
from official.xlnet.modeling.ops.shapes import sizes


@tf.custom_gradient
def look_up(table_VD: tf.Tensor, token_ids_BT: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Rows of a table, and the table itself for a tied head.

    The gradient of the table is one array: the head's, to which the gradients of the rows are
    added in place. Summed as two gradients of one variable they would cost three more copies in
    memory, but no time that can be measured.
    It is computed last, so that this largest of all gradients does not lie in memory during the
    backward pass.

    Args:
      table_VD: [V, D].
      token_ids_BT: int32 [B, T].

    Returns:
      [B, T, D], and the table as the head must read it.
    """

    def gradient(d_rows_BTD, d_table_VD):
        if not tf.executing_eagerly():
            d_table_VD.op._add_control_input(d_rows_BTD.op)  # There is no public way to say so.
        return tf.tensor_scatter_nd_add(d_table_VD, token_ids_BT[..., None], d_rows_BTD), None

    return (tf.gather(table_VD, token_ids_BT), tf.identity(table_VD)), gradient


@keras.utils.register_keras_serializable(package="xlnet")
class LMHead(ConfiguredLayer):
    """logits = g·Eᵀ + bias, float32.

    Rows of the word embedding after the V pieces are padding, and have no logits.

    Args:
      vocab_size: V.
      embedding_rows: number of rows of the word embedding; 0: V.
    """

    def __init__(self, vocab_size: int, embedding_rows: int = 0, **kwargs):
        super().__init__(**kwargs)
        self.vocab_size, self.embedding_rows = vocab_size, embedding_rows

    @classmethod
    def of(cls, model: ModelConfig, **kwargs) -> LMHead:
        """Creates the head of a network.

        Args:
          model: hyperparameters of the network.
          **kwargs: arguments of a Keras layer.
        """
        return cls(model.vocab_size, embedding_rows=model.embedding_rows, **kwargs)

    def build(self, input_shape=None):
        rows = max(self.vocab_size, self.embedding_rows)
        self.bias = self.add_weight(name="bias", shape=[rows], initializer="zeros")
        super().build(input_shape)

    def call(self, query_BPD: tf.Tensor, embedding_VD: tf.Tensor) -> tf.Tensor:
        """[B, P, D] and the word embedding [V or more, D] → float32 [B, P, V]."""
        bias_V = tf.cast(self.bias, tf.float32)
        if self.embedding_rows > self.vocab_size:
            embedding_VD, bias_V = embedding_VD[: self.vocab_size], bias_V[: self.vocab_size]
        _, num_targets, width = sizes(query_BPD)
        logits = multiply(tf.reshape(query_BPD, [-1, width]), embedding_VD, transpose_b=True)
        logits = tf.cast(logits, tf.float32) + bias_V
        return tf.reshape(logits, [-1, num_targets, self.vocab_size])
