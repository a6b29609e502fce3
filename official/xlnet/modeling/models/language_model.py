"""A language model, encoder and LM head, without what trains it."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.registry import NETWORKS
from official.xlnet.modeling.layers.lm_head import LMHead
from official.xlnet.modeling.networks.encoder import Encoder
from official.xlnet.modeling.networks.encoder_inputs import by_name
from official.xlnet.modeling.objectives.base import prediction_rows
from official.xlnet.modeling.ops.initializers import build_layers


class LanguageModel:
    """Base class of language models: an `XLNetPretrainer`, or a `LanguageModule` for inference.

    Attributes:
      config: the configuration.
      encoder: the encoder.
      lm_head: its LM head, tied to the word embedding.
    """

    config: XLNetConfig
    encoder: Encoder
    lm_head: LMHead

    def create_layers(self, dtype: Any) -> None:
        """Creates encoder and LM head as `config` says, without their variables.

        Args:
          dtype: their precision policy.
        """
        model = self.config.model
        name = f"{model.network}_encoder"
        self.encoder = NETWORKS[model.network](self.config, dtype=dtype, name=name)
        self.lm_head = self.encoder.lm_head_class.of(model, dtype=dtype, name="lm_head")

    def run_layers(
        self, inputs: dict[str, tf.Tensor] | tf.Tensor, training: bool | None = None
    ) -> dict[str, tf.Tensor]:
        """The encoder's outputs and the logits, for the inputs of a call of `XLNetPretrainer`."""
        inputs = by_name(inputs)
        of_encoder = {name: x for name, x in inputs.items() if name != "content_positions"}
        # A frozen encoder is used as it is, without dropout.
        is_trained = training and self.encoder.trainable
        outputs = self.encoder(of_encoder, training=is_trained, return_word_embedding=True)
        embedding_VD = outputs.pop("word_embedding")
        rows_BPD = prediction_rows(outputs, inputs)
        if rows_BPD is not None:
            outputs["logits"] = self.lm_head(rows_BPD, embedding_VD)
        return outputs


class LanguageModule(LanguageModel, tf.Module):
    """Encoder and LM head for inference, in float32.

    Args:
      config: the configuration of the model.
    """

    def __init__(self, config: XLNetConfig):
        config.check()
        super().__init__(name="language_model")
        self.config = config
        self.create_layers("float32")
        build_layers(self.encoder, self.lm_head)

    def __call__(
        self, inputs: dict[str, tf.Tensor] | tf.Tensor, training: bool | None = None
    ) -> dict[str, tf.Tensor]:
        return self.run_layers(inputs, training)
