"""The inference network of a language model: the packed encoder and the LM head."""

from __future__ import annotations

import tensorflow as tf

from official.xlnet.inference.network.packed_encoder import PackedEncoder
from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer


class LanguageModelNetwork(tf.Module):
    """Log-likelihoods of tokens, given others.

    Args:
      model: a pre-trained model; its weights are copied.
      max_length: largest number of tokens T of an input.
      storage: how matrices are stored; one of `WEIGHT_STORAGE`.
      with_memory: whether `memory` is taken and returned, for texts in several windows.
    """

    def __init__(
        self,
        model: XLNetPretrainer,
        max_length: int,
        storage: str = "float32",
        with_memory: bool = False,
    ):
        super().__init__(name="network")
        self.encoder = PackedEncoder(
            model.encoder, max_length, storage=storage, with_memory=with_memory
        )
        self._bias_V = tf.Variable(model.lm_head.bias.numpy(), trainable=False)

    def log_likelihoods(self, vectors: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        """Values log softmax(E · vector + b)[label], float32 [..., P].

        Args:
          vectors: float32 [..., P, D], of the query stream.
          labels: int32 [..., P], the tokens.
        """
        vectors_XD = tf.reshape(vectors, [-1, vectors.shape[-1]])
        logits_XV = self.encoder.embedding.multiply(vectors_XD, transpose=True) + self._bias_V
        labels_X = tf.reshape(labels, [-1])
        losses_X = tf.nn.sparse_softmax_cross_entropy_with_logits(labels_X, logits_XV)
        return tf.reshape(-losses_X, tf.shape(labels))
