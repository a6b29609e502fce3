"""The inference network of a language model: the encoder for inference and the LM head."""

from __future__ import annotations

import tensorflow as tf

from official.xlnet.inference.network.inference_encoder import InferenceEncoder, VectorsAndMemory
from official.xlnet.modeling.models.language_model import LanguageModel
from official.xlnet.modeling.ops.shapes import sizes
from official.xlnet.tokenization.special_tokens import EOD_ID


class LanguageModelNetwork(tf.Module):
    """Log-likelihoods of tokens, given others.

    Args:
      model: a pre-trained model; its weights are copied.
      max_length: largest number of tokens T of an input.
      storage: how matrices are stored; one of `WEIGHT_STORAGE`.
      with_memory: whether `memory` is taken and returned, for texts in several windows.

    Attributes:
      is_causal: whether the content stream at a token predicts the next one, as the model was
        trained; else the query stream predicts a token at its own position.
    """

    def __init__(
        self,
        model: LanguageModel,
        max_length: int,
        storage: str = "float32",
        with_memory: bool = False,
    ):
        super().__init__(name="network")
        self.is_causal = model.config.objective.kind == "causal"
        self.encoder = InferenceEncoder(model.encoder, max_length, storage, with_memory)
        self._vocab_size = model.config.model.vocab_size
        bias_V = model.lm_head.bias.numpy()[: self._vocab_size]
        self._bias_V = tf.Variable(bias_V, trainable=False)
        # A Keras layer would be saved with all its training.
        embedding = model.encoder.word_embedding
        self._head = lambda vectors_BPD: model.lm_head(vectors_BPD, embedding.embeddings)

    def left_to_right(
        self,
        token_ids: tf.Tensor,
        is_padding: tf.Tensor,
        previous: tf.Tensor | None = None,
        memory: tf.Tensor | None = None,
        memory_length: tf.Tensor | None = None,
    ) -> VectorsAndMemory:
        """Vectors that predict each token from those before it.

        A causal model reads the token before the first one too. Of a text's first token that is
        `<eod>`: the end of the document before.

        Args:
          token_ids: int32 [B, T].
          is_padding: bool [B, T]; padding is on the left or on the right.
          previous: int32 [B], for a causal model the token before each row; by default `<eod>`.
          memory: see `InferenceEncoder`; with a causal model, of the tokens before `previous`.
          memory_length: see `InferenceEncoder`.

        Returns:
          Vectors [B, T, D]; and the memory.
        """
        if not self.is_causal:
            order_1T = tf.range(token_ids.shape[1])[None]
            return self.encoder.in_order(
                token_ids, is_padding, order_1T, memory=memory, memory_length=memory_length
            )
        if previous is None:
            previous = tf.fill(tf.shape(token_ids)[:1], EOD_ID)
        is_first_BT = tf.pad(is_padding[:, :-1], [[0, 0], [1, 0]], constant_values=True)
        before_BT = tf.pad(token_ids[:, :-1], [[0, 0], [1, 0]])
        before_BT = tf.where(is_first_BT, previous[:, None], before_BT)
        return self.encoder(before_BT, is_padding, memory=memory, memory_length=memory_length)

    def log_likelihoods(self, vectors: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        """Values log softmax(E · vector + b)[label], float32 [..., P].

        Args:
          vectors: float32 [..., P, D], that predict the tokens.
          labels: int32 [..., P], the tokens.
        """
        labels_X, logits_XV = tf.reshape(labels, [-1]), self._logits(vectors)
        losses_X = tf.nn.sparse_softmax_cross_entropy_with_logits(labels_X, logits_XV)
        return tf.reshape(-losses_X, tf.shape(labels))

    def log_likelihoods_and_entropies(self, vectors: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        """The log-likelihood of each token and the entropy of its distribution.

        Args:
          vectors: see `log_likelihoods`.
          labels: see `log_likelihoods`.

        Returns:
          float32 [..., P, 2], in nats.
        """
        labels_X, logits_XV = tf.reshape(labels, [-1]), self._logits(vectors)
        losses_X = tf.nn.sparse_softmax_cross_entropy_with_logits(labels_X, logits_XV)
        log_p_XV = tf.nn.log_softmax(logits_XV)
        entropy_X = -tf.reduce_sum(tf.exp(log_p_XV) * log_p_XV, axis=1)
        both_X2 = tf.stack([-losses_X, entropy_X], axis=1)
        return tf.reshape(both_X2, [*sizes(labels), 2])

    def logits(self, vectors: tf.Tensor) -> tf.Tensor:
        """Values E · vector + b, float32 [B, P, V].

        Args:
          vectors: float32 [B, P, D], that predict tokens.
        """
        return tf.reshape(self._logits(vectors), [*sizes(vectors)[:2], self._vocab_size])

    def _logits(self, vectors: tf.Tensor) -> tf.Tensor:
        """Logits of all vectors, float32 [X, V]."""
        vectors_XD = tf.reshape(vectors, [-1, vectors.shape[-1]])
        if not self.encoder.is_stored:
            return self._head(vectors_XD[None])[0]
        logits_XV = self.encoder.embedding.multiply(vectors_XD, transpose=True)
        return logits_XV[:, : self._vocab_size] + self._bias_V  # Without padding rows.
