"""Auxiliary language-model loss of fine-tuning (Radford et al., GPT, section 3.2)."""

from __future__ import annotations

import tensorflow as tf

from official.xlnet.configs.model import ModelConfig
from official.xlnet.configs.registry import TASK_LOSSES
from official.xlnet.modeling.layers.lm_head import LMHead
from official.xlnet.modeling.networks.xlnet_encoder import XLNetEncoder
from official.xlnet.modeling.objectives.permutation_sampling import causal_order
from official.xlnet.modeling.ops.initializers import build_layers
from official.xlnet.modeling.ops.keras import Layer, keras
from official.xlnet.tokenization.special_tokens import NUM_SPECIAL


@TASK_LOSSES.register("language_model")
class AuxiliaryLanguageModel(Layer):
    """Cross entropy of each text of a batch, read from left to right:

        loss = - 1/n Σ_t log p(x_t | x_1 … x_{t-1}),    t over the n words after the first

    The text is read a second time, as the model was pre-trained to predict: from the query stream
    (`objective.kind` `permutation`) or from the content stream at the previous token (`causal`).

    Args:
      model: hyperparameters of the network.
      kind: the objective that the model was pre-trained with, `objective.kind`.
    """

    def __init__(self, model: ModelConfig, kind: str, **kwargs):
        super().__init__(**kwargs)
        self.kind = kind
        sizes = model.vocab_size, model.embedding_rows
        self.lm_head = LMHead(*sizes, dtype=self.dtype_policy, name="lm_head")

    def pretrained(self) -> dict[str, keras.layers.Layer]:
        """Returns the layers that a pre-trained model has, by the name of its part."""
        return {"lm_head": self.lm_head}

    def build(self, input_shape=None):
        build_layers(self.lm_head)
        super().build(input_shape)

    def call(
        self, encoder: XLNetEncoder, inputs: dict[str, tf.Tensor], seed: tf.Tensor | None = None
    ) -> tf.Tensor:
        """Computes the loss of each unit, in nats per token.

        Args:
          encoder: the encoder.
          inputs: `token_ids` and `segment_ids` int32 [U, S, T], `is_padding` bool [U, S, T].
          seed: dropout seed, int32 [2]. Dropout is applied only if it is given.

        Returns:
          float32 [U], the mean over the words of all S sequences; 0 without any.
        """
        sequences, tokens = inputs["token_ids"].shape[1:]
        names = "token_ids", "segment_ids", "is_padding"
        rows = {name: tf.reshape(inputs[name], [-1, tokens]) for name in names}
        num_rows = tf.shape(rows["token_ids"])[0]
        rows["order"] = causal_order(num_rows, tokens)
        if self.kind == "permutation":
            rows["target_positions"] = tf.tile(tf.range(1, tokens)[None], [num_rows, 1])
        outputs = encoder(
            {**rows, "dropout_seed": seed},
            training=seed is not None,
            return_word_embedding=True,
        )
        hidden_XPD = outputs.get("query", outputs["content"][:, :-1])
        logits_XPV = self.lm_head(hidden_XPD, outputs["word_embedding"])
        labels_XP = rows["token_ids"][:, 1:]
        loss_XP = tf.nn.sparse_softmax_cross_entropy_with_logits(labels_XP, logits_XPV)
        counts_XP = ~rows["is_padding"][:, :-1] & (labels_XP >= NUM_SPECIAL)
        weight_XP = tf.cast(counts_XP, tf.float32)
        shape = [-1, sequences * (tokens - 1)]
        loss_U = tf.reduce_sum(tf.reshape(loss_XP * weight_XP, shape), axis=1)
        return tf.math.divide_no_nan(loss_U, tf.reduce_sum(tf.reshape(weight_XP, shape), axis=1))
