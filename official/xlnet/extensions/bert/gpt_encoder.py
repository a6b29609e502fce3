"""GPT's decoder: BERT's blocks with a causal mask, without segments."""

from __future__ import annotations

import tensorflow as tf
import tf_keras

from official.xlnet.extensions.bert.bert_encoder import BertEncoder
from official.xlnet.modeling.layers.lm_head import LMHead
from official.xlnet.modeling.networks.encoder import register_network


@register_network("gpt")
@tf_keras.utils.register_keras_serializable(package="xlnet")
class GptEncoder(BertEncoder):
    """GPT (Radford et al., 2018): learned absolute positions, no position sees a later one.

        h_0 = word + position;  h_l = block_l(h_{l-1})

    Arguments, call arguments and outputs are those of `BertEncoder`; `segment_ids` are ignored.
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
