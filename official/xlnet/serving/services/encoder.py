"""Embedding service: vectors of tokens and texts from the encoder."""

from __future__ import annotations

import tensorflow as tf

from official.xlnet.inference.network.inference_encoder import InferenceEncoder
from official.xlnet.inference.network.length_buckets import Buckets
from official.xlnet.modeling.networks import Encoder
from official.xlnet.serving.graph.settings import Settings
from official.xlnet.serving.services.base import Service
from official.xlnet.tokenization.graph.tokenizer import GraphTokenizer


class EncoderService(Service):
    """Text embedding.

    Outputs:
      embeddings: hidden states of the tokens, float32 [B, T, D]; 0 at padding.
      token_ids: int32 [B, T]; 0 at padding, which is on the left.
      num_tokens: int32 [B].
      cls: hidden state of CLS, float32 [B, D].
      mean: mean over all tokens, float32 [B, D].

    Args:
      encoder: the encoder.
      tokenizer: in-graph tokenizer.
      settings: export settings.
    """

    def __init__(self, encoder: Encoder, tokenizer: GraphTokenizer, settings: Settings):
        super().__init__(tokenizer, encoder.config.model.vocab_size, settings)
        self.num_texts = len(settings.text_columns)
        self._encoder = network = InferenceEncoder(encoder, settings.max_length, settings.weights)

        def embed(inputs):
            content_BTD = network(
                inputs["token_ids"], inputs["is_padding"], inputs["segment_ids"]
            ).vectors
            real_BT = ~inputs["is_padding"]
            real_BT1 = tf.cast(real_BT, tf.float32)[..., None]
            content_BTD *= real_BT1
            total_BD = tf.reduce_sum(content_BTD, axis=1)
            return {
                "embeddings": content_BTD,
                "token_ids": tf.where(real_BT, inputs["token_ids"], 0),
                "num_tokens": tf.reduce_sum(tf.cast(real_BT, tf.int32), axis=1),
                "cls": content_BTD[:, -1],
                "mean": tf.math.divide_no_nan(total_BD, tf.reduce_sum(real_BT1, axis=1)),
            }

        self._embed = Buckets(embed, settings.lengths, ("embeddings", "token_ids"))

    def from_texts(self, texts):
        columns = [self.tokenizer(texts[name]) for name in self.text_names]
        return self._embed(self.tokenizer.pack(columns, self.settings.max_length))

    def from_tokens(self, inputs):
        return self._embed(inputs)
