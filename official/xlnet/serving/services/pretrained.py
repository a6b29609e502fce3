"""Services of pre-trained models: log-likelihoods of texts, vectors of tokens and texts."""

from __future__ import annotations

import tensorflow as tf

from official.xlnet.inference.network.inference_encoder import InferenceEncoder
from official.xlnet.inference.network.language_model_network import LanguageModelNetwork
from official.xlnet.inference.network.length_buckets import in_buckets
from official.xlnet.modeling.models.language_model import LanguageModel
from official.xlnet.modeling.networks import Encoder
from official.xlnet.serving.services.base import ExportSettings, Service
from official.xlnet.tokenization.graph.packing import padded
from official.xlnet.tokenization.graph.ragged import slices
from official.xlnet.tokenization.graph.tokenizer import GraphTokenizer
from official.xlnet.tokenization.special_tokens import SEGMENT_A


class LanguageModelService(Service):
    """Scores texts by log p(x) = Σ_t log p(x_t | x_<t), as `scoring.score` does in one window.

    Outputs:
      log_likelihood: in nats, float32 [B].
      log_likelihoods: of each token, in nats, float32 [B, T]; 0 at padding, which is on the left.
      pieces: string [B, T]; "" at padding.
      num_tokens: int32 [B].
      is_truncated: whether the text was truncated, bool [B]; for text inputs only.

    Args:
      model: a pre-trained model.
      pieces: the vocabulary, in the order of ids.
      tokenizer: in-graph tokenizer.
      settings: export settings.
    """

    def __init__(
        self,
        model: LanguageModel,
        pieces: list[str],
        tokenizer: GraphTokenizer,
        settings: ExportSettings,
    ):
        super().__init__(tokenizer, model.config.model.vocab_size, settings)
        network = LanguageModelNetwork(model, settings.max_length, settings.weights)
        self._network = network
        self._pieces = tf.constant(pieces)

        def score(inputs):
            token_ids_BT, is_padding_BT = inputs["token_ids"], inputs["is_padding"]
            vectors_BTD, _ = network.left_to_right(token_ids_BT, is_padding_BT)
            log_BT = tf.map_fn(  # Limits memory to the logits of one row.
                lambda row: network.log_likelihoods(*row),
                (vectors_BTD, token_ids_BT),
                parallel_iterations=1,
                fn_output_signature=tf.TensorSpec([vectors_BTD.shape[1]], tf.float32),
            )
            log_BT = tf.where(is_padding_BT, 0.0, log_BT)
            return {
                "log_likelihoods": log_BT,
                "log_likelihood": tf.reduce_sum(log_BT, axis=1),
                # Plus 1, as buckets pad with 0.
                "ids_plus_1": tf.where(is_padding_BT, 0, token_ids_BT + 1),
                "num_tokens": tf.reduce_sum(tf.cast(~is_padding_BT, tf.int32), axis=1),
            }

        self._score = in_buckets(score, settings.lengths, ("log_likelihoods", "ids_plus_1"))

    def from_texts(self, texts):
        ids = self.tokenizer(texts[self.text_names[0]])
        length = self.settings.max_length
        sizes_B = tf.cast(ids.row_lengths(), tf.int32)
        kept_B = tf.minimum(sizes_B, length)
        rows_B = tf.range(tf.size(sizes_B))
        cut = slices(ids, rows_B, tf.zeros_like(rows_B), kept_B)
        segments = cut.with_values(tf.fill(tf.shape(cut.values), SEGMENT_A))
        outputs = self.from_tokens(padded({"token_ids": cut, "segment_ids": segments}, length))
        return outputs | {"is_truncated": sizes_B > length}

    def from_tokens(self, inputs):
        outputs = self._score(inputs)
        ids_BT = outputs.pop("ids_plus_1") - 1
        pieces_BT = tf.gather(self._pieces, tf.maximum(ids_BT, 0))
        return outputs | {"pieces": tf.where(ids_BT < 0, "", pieces_BT)}


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

    def __init__(self, encoder: Encoder, tokenizer: GraphTokenizer, settings: ExportSettings):
        super().__init__(tokenizer, encoder.config.model.vocab_size, settings)
        self.num_texts = len(settings.text_columns)
        self._encoder = network = InferenceEncoder(encoder, settings.max_length, settings.weights)

        def embed(inputs):
            content_BTD, _ = network(
                inputs["token_ids"], inputs["is_padding"], inputs["segment_ids"]
            )
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

        self._embed = in_buckets(embed, settings.lengths, ("embeddings", "token_ids"))

    def from_texts(self, texts):
        columns = [self.tokenizer(texts[name]) for name in self.text_names]
        return self._embed(self.tokenizer.pack(columns, self.settings.max_length))

    def from_tokens(self, inputs):
        return self._embed(inputs)
