"""Sequence summary (pooler): one vector for a sequence."""

from __future__ import annotations

import tensorflow as tf

from official.xlnet.configs.model import ModelConfig
from official.xlnet.modeling.heads.base import MASKED
from official.xlnet.modeling.kernels.matrix_products import from_heads, to_heads
from official.xlnet.modeling.kernels.stateless_dropout import dropout
from official.xlnet.modeling.ops.initializers import build_layers, normal
from official.xlnet.modeling.ops.keras import Dense, Layer


class SequenceSummary(Layer):
    """Pools hidden states into one vector: dropout(tanh(W · pool(content) + b)).

    `kind` selects the pooling:
      last: the last token that is not padding, which is CLS.
      first: the first token that is not padding.
      mean: the mean over all tokens that are not padding.
      attn: attention with one learned query, as in `summarize_sequence` of the XLNet release.

    Args:
      model: hyperparameters of the network.
      kind: the pooling, `task.summary`.
    """

    def __init__(self, model: ModelConfig, kind: str, **kwargs):
        super().__init__(dtype="float32", **kwargs)
        self.model, self.kind = model, kind
        self.projection = Dense(
            model.d_model,
            "tanh",
            kernel_initializer=normal(model.init_std),
            name="projection",
            dtype="float32",
        )

    def build(self, input_shape):
        model = self.model
        build_layers(self.projection, input_shape=[None, model.d_model])
        if self.kind == "attn":

            def weight(name, *shape):
                return self.add_weight(name=name, shape=shape, initializer=normal(model.init_std))

            kernel = model.d_model, model.num_heads, model.d_head
            self.query = weight("query", model.d_model)
            self.query_kernel = weight("q_kernel", *kernel)
            self.key_kernel = weight("k_kernel", *kernel)
            self.value_kernel = weight("v_kernel", *kernel)
            self.output_kernel = weight("o_kernel", *kernel)
        super().build(input_shape)

    def call(
        self, content_XTD: tf.Tensor, is_padding_XT: tf.Tensor, seed: tf.Tensor | None = None
    ) -> tf.Tensor:
        """Pools each sequence.

        Args:
          content_XTD: hidden states, float [X, T, D].
          is_padding_XT: bool [X, T], True at padding.
          seed: dropout seed, int32 [2]. Dropout is applied only if it is given.

        Returns:
          float32 [X, D].
        """
        picked_XD = self._pick(tf.cast(content_XTD, tf.float32), is_padding_XT)
        return dropout(self.projection(picked_XD), self.model.dropout, seed)

    def _pick(self, content_XTD, is_padding_XT):
        if self.kind == "last" and content_XTD.shape[1] == 1:  # Inference computes it alone.
            return content_XTD[:, -1]
        real_XT = tf.cast(~is_padding_XT, tf.float32)
        if self.kind == "last":
            from_end_X = tf.argmax(real_XT[:, ::-1], axis=1, output_type=tf.int32)
            return tf.gather(content_XTD, tf.shape(content_XTD)[1] - 1 - from_end_X, batch_dims=1)
        if self.kind == "first":
            return tf.gather(content_XTD, tf.argmax(real_XT, axis=1), batch_dims=1)
        if self.kind == "mean":
            count_X1 = tf.reduce_sum(real_XT, axis=1, keepdims=True)
            total_XD = tf.reduce_sum(content_XTD * real_XT[..., None], axis=1)
            return tf.math.divide_no_nan(total_XD, count_X1)
        query_11D = tf.convert_to_tensor(self.query)[None, None]
        query_1N1H = to_heads(query_11D, self.query_kernel) * self.model.d_head**-0.5
        key_XNTH = to_heads(content_XTD, self.key_kernel)
        value_XNTH = to_heads(content_XTD, self.value_kernel)
        scores_XNT = tf.reduce_sum(query_1N1H * key_XNTH, axis=-1)
        scores_XNT = tf.where(is_padding_XT[:, None], MASKED, scores_XNT)
        attended_XNH = tf.einsum("xnt,xnth->xnh", tf.nn.softmax(scores_XNT), value_XNTH)
        return from_heads(attended_XNH[:, :, None], self.output_kernel)[:, 0]
