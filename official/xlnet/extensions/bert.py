"""Networks of BERT, GPT and GPT-2, behind the inputs and outputs of `XLNetEncoder`.

BERT's encoder is the Model Garden's. GPT's has its blocks with a causal mask, without
segments; GPT-2's has layer normalization before each part of a block, and once more at the end.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from official.nlp.modeling.networks.bert_encoder import BertEncoderV2
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.model import ModelConfig
from official.xlnet.errors import require_data
from official.xlnet.extensions.settings import BertModelConfig
from official.xlnet.modeling.kernels.product_type import require_float32_products
from official.xlnet.modeling.layers.feed_forward import ACTIVATIONS
from official.xlnet.modeling.layers.lm_head import LMHead
from official.xlnet.modeling.networks.encoder import Encoder, register_network
from official.xlnet.modeling.networks.encoder_inputs import checked_inputs
from official.xlnet.modeling.ops.initializers import build_layers
from official.xlnet.modeling.ops.keras import global_policy, keras, require_tf_keras

require_tf_keras("the networks bert, gpt and gpt2")

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
        self.dense = keras.layers.Dense(
            width,
            ACTIVATIONS[activation],
            kernel_initializer=keras.initializers.TruncatedNormal(stddev=init_std),
            dtype=self.dtype_policy,
            name="dense",
        )
        self.layer_norm = keras.layers.LayerNormalization(
            epsilon=1e-12, dtype="float32", name="layer_norm"
        )

    @classmethod
    def of(cls, model: ModelConfig, **kwargs) -> MaskedLMHead:
        settings = model.d_model, model.activation, model.init_std, model.embedding_rows
        return cls(model.vocab_size, *settings, **kwargs)

    def build(self, input_shape=None):
        build_layers(self.dense, self.layer_norm, input_shape=[None, None, self.width])
        super().build(input_shape)

    def call(self, content_BPD: tf.Tensor, embedding_VD: tf.Tensor) -> tf.Tensor:
        """[B, P, D] and the word embedding [V or more, D] → float32 [B, P, V]."""
        transformed_BPD = self.layer_norm(self.dense(content_BPD))
        return super().call(tf.cast(transformed_BPD, self.compute_dtype), embedding_VD)


@register_network("bert")
@keras.utils.register_keras_serializable(package="xlnet")
class BertEncoder(BertEncoderV2, Encoder):
    """BERT encoder (Devlin et al., 2019): learned absolute positions, one stream, no memory.

        h_0 = layer norm(word + position + segment);  h_l = block_l(h_{l-1})

    The layers, their initialization and the names of their variables are the same as in
    `official.nlp.modeling.networks.BertEncoderV2`, without its pooler. Positions count from the
    first token that is not padding, so padding may be on either side.

    Dropout draws from TensorFlow's random generator: it is not a function of `dropout_seed`.

    Args:
      config: the configuration, or its dictionary; reads `model`.
      **kwargs: other arguments of `Encoder`; those that concern memory are ignored.

    Call arguments:
      inputs: token_ids alone, or a dictionary of
        token_ids: int32 [B, T], T at most `model.max_positions`.
        segment_ids: int32 [B, T]; ids from `model.num_segments` on count as the last one.
          Default: as of `XLNetEncoder`.
        is_padding: bool [B, T], True where there is no token. Default: where `<pad>` is.
        order: int32 [B, T]; position i sees j when order[j] <= order[i]. Default 0: everything
          sees everything.
        perm_mask: bool [B, T, T] in the place of `order`, True where i may not see j. A token
          always sees itself.
        dropout_seed: ignored.
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
    norm_first = False  # Whether layer normalization comes before each part of a block.

    def __init__(self, config: XLNetConfig | dict[str, Any], **kwargs):
        config = XLNetConfig.of(config)
        model = config.model.settings(BertModelConfig)
        model.check()
        with global_policy(kwargs.get("dtype")):
            super().__init__(
                config=config,
                vocab_size=model.num_embeddings,
                hidden_size=model.d_model,
                num_layers=model.num_layers,
                num_attention_heads=model.num_heads,
                max_sequence_length=model.max_positions,
                type_vocab_size=model.num_segments,
                inner_dim=model.d_inner,
                inner_activation=ACTIVATIONS[model.activation],
                output_dropout=model.dropout,
                attention_dropout=model.dropatt,
                initializer=keras.initializers.TruncatedNormal(stddev=model.init_std),
                norm_first=self.norm_first,
                return_attention_scores=True,
                **kwargs,
            )

    @property
    def word_embedding(self) -> keras.layers.Layer:
        """The layer of the word embedding."""
        return self._embedding_layer

    @property
    def blocks(self) -> list[keras.layers.Layer]:
        """The transformer blocks."""
        return self._transformer_layers

    def build(self, input_shape=None):
        # The garden's layers are built by their first call.
        with global_policy(self.dtype_policy):
            self.call({"token_ids": tf.zeros([1, 1], tf.int32)}, training=False)
        super().build(input_shape)

    def call(
        self,
        inputs: dict[str, tf.Tensor] | tf.Tensor,
        training: bool | None = None,
        return_word_embedding: bool = False,
        return_hidden_states: bool = False,
        return_attention_scores: bool = False,
    ) -> dict[str, tf.Tensor]:
        require_float32_products("with the Model Garden's layers")
        inputs = checked_inputs(inputs, _INPUTS, self.model.vocab_size)
        if "order" in inputs and "perm_mask" in inputs:
            raise ValueError("expected order or perm_mask, got both")
        length, longest = inputs["token_ids"].shape[1], self.model.max_positions
        expected = f"at most model.max_positions = {longest} tokens"
        require_data((length or 0) <= longest, "token_ids", expected, length)
        dtype = self.compute_dtype
        hidden_BTD = self._embedding_dropout(self._embed(inputs), training=training)
        hidden_BTD = tf.cast(hidden_BTD, dtype)
        mask_BTT = self._can_attend(inputs)
        hidden_states, scores = [hidden_BTD], []
        for block in self._transformer_layers:
            hidden_BTD, scores_BNTT = block([hidden_BTD, mask_BTT], training=training)
            hidden_BTD = tf.cast(hidden_BTD, dtype)  # The garden's blocks end in float32.
            hidden_states.append(hidden_BTD)
            scores.append(scores_BNTT)
        hidden_states[-1] = self._finish(hidden_BTD)
        outputs = {"content": hidden_states[-1]}
        self.mark_padding(outputs, inputs["is_padding"])
        if return_word_embedding:
            outputs["word_embedding"] = self.get_embedding_table()
        if return_hidden_states:
            outputs["hidden_states"] = tf.stack(hidden_states)
        if return_attention_scores:
            outputs["attention_scores"] = tf.stack(scores)
        return outputs

    def _finish(self, hidden_BTD: tf.Tensor) -> tf.Tensor:
        """Computes the outputs from the last block."""
        return hidden_BTD

    def _embed(self, inputs: dict[str, tf.Tensor]) -> tf.Tensor:
        """Word, position and segment embedding, normalized: [B, T, D]."""
        segment_ids_BT = tf.minimum(inputs["segment_ids"], self.model.num_segments - 1)
        segment_BTD = self._type_embedding_layer(segment_ids_BT)
        return self._embedding_norm_layer(self._embed_in_place(inputs) + segment_BTD)

    def _embed_in_place(self, inputs: dict[str, tf.Tensor]) -> tf.Tensor:
        """Word and position embedding, [B, T, D]."""
        word_BTD = self._embedding_layer(inputs["token_ids"])
        position_BTD = self._position_embedding_layer(word_BTD)
        is_real_BT = tf.cast(~inputs["is_padding"], tf.int32)
        place_BT = tf.maximum(tf.cumsum(is_real_BT, axis=1) - 1, 0)
        position_BTD = tf.gather(position_BTD, place_BT, batch_dims=1)
        return word_BTD + position_BTD

    def _can_attend(self, inputs: dict[str, tf.Tensor]) -> tf.Tensor:
        """Whether position i sees j, bool [B, T, T]."""
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

    get_config = Encoder.get_config

    @classmethod
    def from_config(cls, config, custom_objects=None):
        return cls(**config)


@register_network("gpt")
@keras.utils.register_keras_serializable(package="xlnet")
class GptEncoder(BertEncoder):
    """GPT (Radford et al., 2018): learned absolute positions, no position sees a later one.

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

    def _embed(self, inputs: dict[str, tf.Tensor]) -> tf.Tensor:
        return self._embed_in_place(inputs)


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

    def __init__(self, config: XLNetConfig, **kwargs):
        super().__init__(config, **kwargs)
        self.output_norm = keras.layers.LayerNormalization(
            epsilon=1e-12, dtype="float32", name="output_norm"
        )

    def build(self, input_shape=None):
        if self.built:
            return
        super().build(input_shape)
        scale = (2 * self.model.num_layers) ** -0.5
        for variable in self.trainable_variables:
            if variable.name.endswith(("/attention_output/kernel:0", "/output/kernel:0")):
                variable.assign(scale * variable)

    def _finish(self, hidden_BTD: tf.Tensor) -> tf.Tensor:
        return tf.cast(self.output_norm(hidden_BTD), self.compute_dtype)
