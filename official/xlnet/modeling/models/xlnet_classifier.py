"""Sequence classifier as a plain Keras model: token ids in, logits out."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
import tf_keras

from official.xlnet.configs.validation import AT_LEAST_1, require_number, require_type
from official.xlnet.modeling.heads.sequence_summary import SequenceSummary
from official.xlnet.modeling.kernels.stateless_dropout import dropout_seed_of_call
from official.xlnet.modeling.models.checked_fit import CheckedFit
from official.xlnet.modeling.networks import Encoder
from official.xlnet.modeling.networks.encoder_inputs import by_name, with_defaults
from official.xlnet.modeling.ops.initializers import normal
from official.xlnet.modeling.ops.legacy_keras import require_legacy_keras


@tf_keras.utils.register_keras_serializable(package="xlnet")
class XLNetClassifier(CheckedFit):
    """XLNet encoder, sequence summary and a dense layer: logits = W · summary + b.

    A plain Keras model: `compile` takes any optimizer, loss and metrics of `tf_keras`; `fit`,
    `evaluate`, `predict` and `save` work as for any other model. With `num_classes=1` it is a model
    for regression or for one probability.

    Args:
      encoder: the encoder; it is trained too, unless `encoder.trainable` is False.
      num_classes: number of logits, C.

    Call arguments:
      inputs: the inputs that a call of `Tokenizer` returns: a dictionary of `token_ids` int32
        [B, T], `segment_ids` int32 [B, T] and `is_padding` bool [B, T]. Or its `token_ids` alone,
        which the other two follow from.
      training: whether dropout is applied.

    Returns:
      Logits, float32 [B, C].

    Example:
      >>> tokenizer, encoder = load_tokenizer("runs/base"), load_encoder("runs/base")
      >>> model = XLNetClassifier(encoder, num_classes=2)
      >>> loss = tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True)
      >>> model.compile(tf_keras.optimizers.Adam(3e-5), loss, ["accuracy"])
      >>> model.fit(tokenizer(["A fine film.", "Dull."]), tf.constant([1, 0]))
    """

    def __init__(self, encoder: Encoder, num_classes: int, **kwargs):
        kwargs.setdefault("name", "xlnet_classifier")
        super().__init__(**kwargs)
        require_type("encoder", encoder, Encoder)
        require_number("num_classes", num_classes, AT_LEAST_1)
        self.encoder = encoder
        self.num_classes = num_classes
        self.sequence_summary = SequenceSummary(
            encoder.model, encoder.config.task.summary, name="sequence_summary"
        )
        self.logits = tf_keras.layers.Dense(
            num_classes,
            kernel_initializer=normal(encoder.model.init_std),
            dtype="float32",
            name="logits",
        )
        self.build(None)

    def build(self, input_shape=None):
        width = self.encoder.model.d_model
        for layer in (self.encoder, self.sequence_summary, self.logits):
            if not layer.built:
                with tf.name_scope(layer.name):
                    layer.build([None, None, width])
        self.built = True

    @property
    def trainable_weights(self):
        """All but what only pre-training reads."""
        unused = {id(variable) for variable in self.encoder.only_pretrained}
        return [weight for weight in super().trainable_weights if id(weight) not in unused]

    def call(self, inputs: dict[str, tf.Tensor] | tf.Tensor, training: bool | None = None):
        require_legacy_keras(inputs)
        inputs = by_name(inputs)
        token_ids_BT = tf.cast(inputs["token_ids"], tf.int32)
        inputs = with_defaults({**inputs, "token_ids": token_ids_BT})
        seed = dropout_seed_of_call(training, None)
        content_BTD = self.encoder(inputs, training=training)["content"]
        return self.logits(self.sequence_summary(content_BTD, inputs["is_padding"], seed))

    def get_config(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "encoder": tf_keras.saving.serialize_keras_object(self.encoder),
            "num_classes": self.num_classes,
        }

    @classmethod
    def from_config(cls, config, custom_objects=None):
        encoder = tf_keras.saving.deserialize_keras_object(config["encoder"])
        return cls(**{**config, "encoder": encoder})
