"""The encoder with the inputs and outputs of the Model Garden's BERT encoders."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from official.xlnet.modeling.networks.xlnet_encoder import XLNetEncoder
from official.xlnet.modeling.ops.keras import keras, require_tf_keras

require_tf_keras("official.xlnet.projects.garden")


def bert_style_encoder(encoder: XLNetEncoder, **kwargs) -> keras.Model:
    """Creates a functional model for `tfm.nlp.models.BertClassifier`, `BertSpanLabeler` and others.

    Args:
      encoder: the encoder, whose weights the model shares.
      **kwargs: arguments of `keras.Model`, e.g. `name`.

    Returns:
      A model of the inputs
        input_word_ids: int32 [B, T].
        input_mask: int32 [B, T], 0 for padding, which may be on either side.
        input_type_ids: int32 [B, T], segment ids.
      and the outputs
        sequence_output: float [B, T, D], the hidden states.
        pooled_output: float [B, D], the hidden state of the last token that is not padding: CLS,
          where inputs end in it as XLNet's do (`A SEP [B SEP] CLS`).

    Example:
      >>> encoder = bert_style_encoder(load_encoder("xlnet_cased_L-12_H-768_A-12"))
      >>> classifier = tfm.nlp.models.BertClassifier(encoder, num_classes=2)
    """
    names = ("input_word_ids", "input_mask", "input_type_ids")
    inputs = {name: keras.Input([None], dtype=tf.int32, name=name) for name in names}
    layer = BertStyleLayer(encoder, name="bert_style_encoder")
    kwargs.setdefault("name", "xlnet_bert_style_encoder")
    return keras.Model(inputs, layer(inputs), **kwargs)


@keras.utils.register_keras_serializable(package="xlnet")
class BertStyleLayer(keras.layers.Layer):
    """Translates inputs and outputs; see `bert_style_encoder`.

    Args:
      encoder: the encoder.
    """

    def __init__(self, encoder: XLNetEncoder, **kwargs):
        super().__init__(**kwargs)
        self.encoder = encoder

    def call(self, inputs: dict[str, tf.Tensor], training: bool | None = None):
        is_real_BT = tf.cast(inputs["input_mask"], tf.int32)
        content_BTD = self.encoder(
            {
                "token_ids": inputs["input_word_ids"],
                "segment_ids": inputs["input_type_ids"],
                "is_padding": is_real_BT == 0,
            },
            training=training,
        )["content"]
        last_B = tf.reduce_max(tf.range(tf.shape(is_real_BT)[1]) * is_real_BT, axis=1)
        return {
            "sequence_output": content_BTD,
            "pooled_output": tf.gather(content_BTD, last_B, batch_dims=1),
        }

    def get_config(self) -> dict[str, Any]:
        encoder = keras.saving.serialize_keras_object(self.encoder)
        return {**super().get_config(), "encoder": encoder}

    @classmethod
    def from_config(cls, config):
        encoder = keras.saving.deserialize_keras_object(config["encoder"])
        return cls(**{**config, "encoder": encoder})
