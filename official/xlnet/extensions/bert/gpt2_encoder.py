"""GPT-2's decoder: GPT's with layer normalization before each part, and once more at the end."""

from __future__ import annotations

import tensorflow as tf
import tf_keras

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.extensions.bert.gpt_encoder import GptEncoder
from official.xlnet.modeling.networks.encoder import register_network


@register_network("gpt2")
@tf_keras.utils.register_keras_serializable(package="xlnet")
class Gpt2Encoder(GptEncoder):
    """GPT-2 (Radford et al., 2019): GPT with pre-activation blocks and scaled initial weights.

        x = h_{l-1} + attention(layer norm(h_{l-1}));  h_l = x + feed-forward(layer norm(x))
        content = layer norm(h_L)

    The output matrices of attention and of the feed-forward network start at 1/√N of what they
    are in GPT, N = 2 L being the number of residual layers.

    Arguments, call arguments and outputs are those of `GptEncoder`; the last hidden state is
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
        self.output_norm = tf_keras.layers.LayerNormalization(
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
