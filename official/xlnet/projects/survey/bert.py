"""Networks of BERT, GPT and GPT-2, behind the inputs and outputs of `XLNetEncoder`.

GPT has BERT's blocks with a causal mask, without segments; GPT-2 has layer normalization before
each part of a block, and once more at the end.
"""

from __future__ import annotations

import tensorflow as tf

from official.xlnet.configs.model import ModelConfig
from official.xlnet.errors import require_data
from official.xlnet.modeling.kernels.stateless_dropout import dropout, dropout_seed_of_call, fold_in
from official.xlnet.modeling.layers.feed_forward import ACTIVATIONS
from official.xlnet.modeling.layers.lm_head import LMHead, look_up
from official.xlnet.modeling.networks.encoder import Encoder, Experiment, register_network
from official.xlnet.modeling.networks.encoder_inputs import checked_inputs
from official.xlnet.modeling.ops.initializers import build_layers, truncated_normal
from official.xlnet.modeling.ops.keras import Embedding, keras, name_scope
from official.xlnet.projects.survey.settings import BertModelConfig
from official.xlnet.projects.survey.transformer_block import (
    Projection,
    TransformerEncoderBlock,
    norm,
)

# The dropout seed of each part is fold_in(seed, one of these); block n has FIRST_BLOCK + n.
EMBEDDING, FIRST_BLOCK = 0, 1

_INPUTS = {"token_ids", "segment_ids", "is_padding", "order", "perm_mask", "dropout_seed"}


@keras.utils.register_keras_serializable(package="xlnet")
class MaskedLMHead(LMHead):
    """BERT's language-model head: logits = layer norm(activation(g W + b))·Eᵀ + bias, float32.

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
        self.dense = Projection([width, width], init_std, dtype=self.dtype_policy, name="dense")
        self.layer_norm = norm("layer_norm")

    @classmethod
    def of(cls, model: ModelConfig, **kwargs) -> MaskedLMHead:
        settings = model.d_model, model.activation, model.init_std, model.embedding_rows
        return cls(model.vocab_size, *settings, **kwargs)

    def build(self, input_shape=None):
        build_layers(self.dense, self.layer_norm, input_shape=[None, None, self.width])
        super().build(input_shape)

    def call(self, content_BPD: tf.Tensor, embedding_VD: tf.Tensor) -> tf.Tensor:
        """[B, P, D] and the word embedding [V or more, D] → float32 [B, P, V]."""
        transformed_BPD = self.layer_norm(ACTIVATIONS[self.activation](self.dense(content_BPD)))
        return super().call(tf.cast(transformed_BPD, self.compute_dtype), embedding_VD)


@register_network("bert")
@keras.utils.register_keras_serializable(package="xlnet")
class BertEncoder(Encoder):
    """BERT encoder (Devlin et al., 2019): learned absolute positions, one stream, no memory.

        h_0 = layer norm(word + position + segment);  h_l = block_l(h_{l-1})

    Outputs, initialization and the names of variables, also in checkpoints, are the same as in
    `official.nlp.modeling.networks.BertEncoderV2`, without its pooler. Positions count from the
    first token that is not padding, so padding may be on either side.

    Args:
      config: the configuration, or its dictionary; reads `model`.
      **kwargs: other arguments of `Encoder`; those that concern memory are ignored.

    Call arguments:
      inputs: token_ids alone, or a dictionary of
        token_ids: int32 [B, T], T at most `model.max_positions`.
        segment_ids: int32 [B, T]; ids from `model.num_segments` on count as the last one.
          Default: as of `XLNetEncoder`.
        is_padding: bool [B, T], True where there is no token. Default: where `<pad>` is.
        order: int32 [B, T]; position i attends to j if order[j] <= order[i]. Default 0: every
          position attends to every position.
        perm_mask: bool [B, T, T] in the place of `order`, True where i may not attend to j.
          A token always attends to itself.
        dropout_seed: int32 [2], makes dropout a pure function of it. Default: a random seed.
      training: whether dropout is applied.
      return_word_embedding: whether to return `word_embedding`.
      return_hidden_states: whether to return `hidden_states`.
      return_attention_scores: whether to return `attention_scores`.

    Returns:
      A dictionary of
        content: [B, T, D].
        word_embedding: [V, D], for a tied head.
        hidden_states: [L + 1, B, T, D], before each block and at the end.
        attention_scores: [L, B, N, T, T], probabilities over the last axis.

    Raises:
      ValueError: an input is unknown or too long, or both `order` and `perm_mask` are given.

    Example:
      >>> model = {"network": "bert", "vocab_size": 100, "mem_len": 0}
      >>> sections = {"objective": {"kind": "denoising"}, "data": {"bidirectional": False}}
      >>> encoder = BertEncoder({"model": model, **sections})
      >>> encoder(tf.constant([[17, 42, 99], [11, 55, 33]]))["content"].shape
      TensorShape([2, 3, 768])
    """

    model: BertModelConfig
    lm_head_class: type[LMHead] = MaskedLMHead
    has_segments = True
    norm_first = False  # Whether layer normalization comes before each part of a block.

    def __init__(self, config: Experiment, **kwargs):
        super().__init__(config, **kwargs)
        model = self.model
        self._embedding_layer = self._table(model.num_embeddings, "word_embeddings")
        self._position_embedding_layer = self._table(model.max_positions, "position_embedding")
        if self.has_segments:
            self._type_embedding_layer = self._table(model.num_segments, "type_embeddings")
            self._embedding_norm_layer = norm("layer_norm")
        output_scale = (2 * model.num_layers) ** -0.5 if self.norm_first else 1.0
        self._transformer_layers = [
            TransformerEncoderBlock(
                model.num_heads,
                model.d_inner,
                model.activation,
                model.dropout,
                model.dropatt,
                model.init_std,
                output_scale,
                self.norm_first,
                dtype=self.dtype_policy,
                name=f"layer_{layer}",
            )
            for layer in range(model.num_layers)
        ]

    def _table(self, num_rows: int, name: str) -> Embedding:
        first, width = truncated_normal(self.model.init_std), self.model.d_model
        return Embedding(num_rows, width, first, dtype=self.dtype_policy, name=name)

    @property
    def word_embedding(self) -> keras.layers.Layer:
        """The layer of the word embedding."""
        return self._embedding_layer

    @property
    def blocks(self) -> list[keras.layers.Layer]:
        """The transformer blocks."""
        return self._transformer_layers

    def build(self, input_shape=None):
        if self.built:
            return
        shape = [None, None, self.model.d_model]
        if self.has_segments:
            build_layers(self._type_embedding_layer)
        build_layers(self._embedding_layer, self._position_embedding_layer)
        if self.has_segments:
            with name_scope("embeddings"):
                build_layers(self._embedding_norm_layer, input_shape=shape)
        with name_scope("transformer"):
            build_layers(*self.blocks, input_shape=shape)
        super().build(input_shape)

    def call(
        self,
        inputs: dict[str, tf.Tensor] | tf.Tensor,
        training: bool | None = None,
        return_word_embedding: bool = False,
        return_hidden_states: bool = False,
        return_attention_scores: bool = False,
    ) -> dict[str, tf.Tensor]:
        inputs = checked_inputs(inputs, _INPUTS, self.model.vocab_size)
        if "order" in inputs and "perm_mask" in inputs:
            raise ValueError("expected order or perm_mask, got both")
        length, longest = inputs["token_ids"].shape[1], self.model.max_positions
        expected = f"at most model.max_positions = {longest} tokens"
        require_data((length or 0) <= longest, "token_ids", expected, length)
        seed = dropout_seed_of_call(training, inputs.get("dropout_seed"))
        embedded_BTD, table_VD = self._embed(inputs)
        embedded_BTD = dropout(embedded_BTD, self.model.dropout, fold_in(seed, EMBEDDING))
        hidden_BTD = tf.cast(embedded_BTD, self.compute_dtype)
        mask_BTT = self._can_attend(inputs)
        hidden_states, scores = [hidden_BTD], []
        for layer, block in enumerate(self.blocks):
            hidden_BTD, scores_BNTT = block(
                hidden_BTD,
                mask_BTT,
                training=training,
                dropout_seed=fold_in(seed, FIRST_BLOCK + layer),
            )
            hidden_states.append(hidden_BTD)
            scores.append(scores_BNTT)
        hidden_states[-1] = self._finish(hidden_BTD)
        outputs = {"content": hidden_states[-1]}
        self.mark_padding(outputs, inputs["is_padding"])
        if return_word_embedding:
            outputs["word_embedding"] = table_VD
        if return_hidden_states:
            outputs["hidden_states"] = tf.stack(hidden_states)
        if return_attention_scores:
            outputs["attention_scores"] = tf.stack(scores)
        return outputs

    def _finish(self, hidden_BTD: tf.Tensor) -> tf.Tensor:
        """Computes the outputs from the last block."""
        return hidden_BTD

    def _embed(self, inputs: dict[str, tf.Tensor]) -> tuple[tf.Tensor, tf.Tensor]:
        """Normalized sum of all embeddings, [B, T, D], and the word embedding, [V, D]."""
        rows_BTD, table_VD = self._embed_in_place(inputs)
        segment_ids_BT = tf.minimum(inputs["segment_ids"], self.model.num_segments - 1)
        segment_BTD, _ = _rows(self._type_embedding_layer, segment_ids_BT)
        return self._embedding_norm_layer(rows_BTD + segment_BTD), table_VD

    def _embed_in_place(self, inputs: dict[str, tf.Tensor]) -> tuple[tf.Tensor, tf.Tensor]:
        """Sum of word and position embedding, [B, T, D], and the word embedding, [V, D]."""
        is_real_BT = tf.cast(~inputs["is_padding"], tf.int32)
        place_BT = tf.maximum(tf.cumsum(is_real_BT, axis=1) - 1, 0)
        position_BTD, _ = _rows(self._position_embedding_layer, place_BT)
        word_BTD, table_VD = _rows(self._embedding_layer, inputs["token_ids"])
        return word_BTD + position_BTD, table_VD

    def _can_attend(self, inputs: dict[str, tf.Tensor]) -> tf.Tensor:
        """Whether position i may attend to j, bool [B, T, T]."""
        num_rows, num_tokens = tf.unstack(tf.shape(inputs["token_ids"]))
        can_attend_BTT = tf.ones([num_rows, num_tokens, num_tokens], tf.bool)
        can_attend_BTT &= ~inputs["is_padding"][:, None, :]
        if "order" in inputs:
            can_attend_BTT &= inputs["order"][:, None, :] <= inputs["order"][:, :, None]
        if "perm_mask" in inputs:
            can_attend_BTT &= ~inputs["perm_mask"] | tf.eye(num_tokens, dtype=tf.bool)
        if self.model.attention_type == "uni":
            place_T = tf.range(num_tokens)
            can_attend_BTT &= place_T <= place_T[:, None]
        return can_attend_BTT


@register_network("gpt")
@keras.utils.register_keras_serializable(package="xlnet")
class GptEncoder(BertEncoder):
    """GPT (Radford et al., 2018): learned absolute positions, causal attention.

        h_0 = word + position;  h_l = block_l(h_{l-1})

    Takes and returns the same as `BertEncoder`; `segment_ids` are ignored.
    `model.attention_type` is `uni`.

    Example:
      >>> model = {"network": "gpt", "attention_type": "uni", "vocab_size": 100, "mem_len": 0}
      >>> sections = {"objective": {"kind": "causal"}, "data": {"bidirectional": False}}
      >>> encoder = GptEncoder({"model": model, **sections})
      >>> encoder(tf.constant([[17, 42, 99], [11, 55, 33]]))["content"].shape
      TensorShape([2, 3, 768])
    """

    lm_head_class = LMHead
    has_segments = False
    _embed = BertEncoder._embed_in_place


@register_network("gpt2")
@keras.utils.register_keras_serializable(package="xlnet")
class Gpt2Encoder(GptEncoder):
    """GPT-2 (Radford et al., 2019): GPT with pre-activation blocks and scaled initial weights.

        x = h_{l-1} + attention(layer norm(h_{l-1}));  h_l = x + feed-forward(layer norm(x))
        content = layer norm(h_L)

    The output matrices of attention and of the feed-forward network start at 1/√N of what they
    are in GPT, N = 2 L being the number of residual layers.

    Takes and returns the same as `GptEncoder`; the last hidden state is
    `content`.

    Example:
      >>> model = {"network": "gpt2", "attention_type": "uni", "vocab_size": 100, "mem_len": 0}
      >>> sections = {"objective": {"kind": "causal"}, "data": {"bidirectional": False}}
      >>> encoder = Gpt2Encoder({"model": model, **sections})
      >>> encoder(tf.constant([[17, 42, 99], [11, 55, 33]]))["content"].shape
      TensorShape([2, 3, 768])
    """

    norm_first = True

    def __init__(self, config: Experiment, **kwargs):
        super().__init__(config, **kwargs)
        self.output_norm = norm("output_norm")

    def build(self, input_shape=None):
        if not self.built:
            build_layers(self.output_norm, input_shape=[None, None, self.model.d_model])
        super().build(input_shape)

    def _finish(self, hidden_BTD: tf.Tensor) -> tf.Tensor:
        return tf.cast(self.output_norm(hidden_BTD), self.compute_dtype)


def _rows(layer: Embedding, ids_BT: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Rows [B, T, D] of an embedding, and the embedding for a tied head."""
    return look_up(tf.convert_to_tensor(layer.embeddings), tf.cast(ids_BT, tf.int32))
