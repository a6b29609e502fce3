"""Copies of an encoder for inference, whose weights are folded and stored in few bytes.

The layers are those that are trained; their weights differ in three ways. What each earns was
measured on a CPU, with three layers of base, as the CPU time of a forward pass:

* matrices are stored in float32, bfloat16, float16 or int8 (`StoredMatrix`);
* projections of distances, W_r · sinusoid(distance), do not depend on the text: they are stored
  instead of computed. 1 x 16, 1 x 128, 1 x 512 and 8 x 128 tokens take 13%, 16%, 10% and 3% less;
* inner rows of the feed-forward part are stored with the padding that training adds in each step:
  5%, 18%, 1% and 1% less.

The last layer computes only the rows that are wanted (`num_content` of `XLNetEncoder`). One product
for queries, keys and values, and columns of queries and keys for segments and padding, did not earn
anything beyond that.
"""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from official.xlnet.modeling.kernels.attention import ProjectedDistances
from official.xlnet.modeling.kernels.matrix_products import inner_width
from official.xlnet.modeling.kernels.stored_matrix import StoredMatrix
from official.xlnet.modeling.layers.feed_forward import FeedForward
from official.xlnet.modeling.layers.relative_attention import (
    RelativeBiases,
    TwoStreamRelativeAttention,
)
from official.xlnet.modeling.layers.relative_position import sinusoids
from official.xlnet.modeling.networks.xlnet_encoder import XLNetEncoder
from official.xlnet.modeling.ops.attention_weights import AttentionWeights


class StoredEncoder(XLNetEncoder):
    """An encoder whose word embedding is a `StoredMatrix`."""

    def _look_up(self, token_ids_BT: tf.Tensor) -> tuple[tf.Tensor, None]:
        return self.word_embedding.rows(token_ids_BT), None


def stored_encoder(
    encoder: XLNetEncoder,
    max_length: int,
    storage: str = "float32",
    mem_len: int = 0,
    num_layers: int | None = None,
) -> tuple[XLNetEncoder, list[tf.Variable]]:
    """Creates a copy of an encoder for inference; it computes in float32.

    It has no dropout and reads no reversed text.

    Args:
      encoder: a built encoder.
      max_length: largest number of tokens T of an input.
      storage: how matrices are stored; one of `WEIGHT_STORAGE`.
      mem_len: columns of the memory that is taken and returned; 0 for none.
      num_layers: layers to compute, from the first on; by default all of them.

    Returns:
      The copy, and all its variables.
    """
    model = encoder.model
    copy = StoredEncoder(encoder.config, encoder.reuse_len, mem_len, dtype="float32")
    copy.blocks = copy.blocks[:num_layers]
    table = sinusoids(max_length + mem_len, 0, model.d_model, model.clamp_len)
    variables: list[tf.Variable] = []

    def collected(next_creator, **kwargs):
        variables.append(next_creator(**kwargs))
        return variables[-1]

    with tf.variable_creator_scope(collected):
        table_VD = encoder.word_embedding.embeddings.numpy()
        copy.word_embedding = StoredMatrix(table_VD, storage, scale_axis=0)
        copy.mask_embedding = _constant(encoder.mask_embedding)
        for block, source in dict(zip(copy.blocks, encoder.blocks, strict=False)).items():
            _store_attention(
                block.attention,
                source.attention,
                encoder.shared_biases,
                np.concatenate(table, axis=1),
                storage,
            )
            _store_feed_forward(block.feed_forward, source.feed_forward, storage)
            for name in ("attention_norm", "feed_forward_norm"):
                norm, source_norm = getattr(block, name), getattr(source, name)
                norm.gamma, norm.beta = _constant(source_norm.gamma), _constant(source_norm.beta)
                norm.built = True
            block.built = True
    copy.depth = encoder.depth
    copy.built = True
    return copy, [*variables, *encoder.depth.variables]


def _store_attention(
    layer: TwoStreamRelativeAttention,
    source: TwoStreamRelativeAttention,
    shared_biases: RelativeBiases | None,
    table_RD: np.ndarray,
    storage: str,
) -> None:
    biases = source.biases if source.untie_r else shared_biases
    assert biases is not None
    position_RNH = np.tensordot(table_RD, source.position_kernel.numpy(), axes=1)
    distances = ProjectedDistances(
        tf.Variable(position_RNH.transpose(1, 0, 2)[None], trainable=False, name="positions")
    )
    weights = AttentionWeights(
        query=StoredMatrix(source.query_kernel.numpy(), storage),
        key=StoredMatrix(source.key_kernel.numpy(), storage),
        value=StoredMatrix(source.value_kernel.numpy(), storage),
        position=None,  # It is in the distances.
        output=StoredMatrix(source.output_kernel.numpy(), storage, scale_axis=0),
        content_bias=_constant(biases.content),
        position_bias=_constant(biases.position),
        segment_bias=_constant(biases.segment),
        segment=_constant(source.segment_embedding),
    )
    layer.use_stored(weights, distances)
    layer.built = True


def _store_feed_forward(layer: FeedForward, source: FeedForward, storage: str) -> None:
    extra = inner_width(source.d_inner) - source.d_inner
    inner_DF = np.pad(source.inner_kernel.numpy(), [[0, 0], [0, extra]])
    outer_FD = np.pad(source.outer_kernel.numpy(), [[0, extra], [0, 0]])
    layer.inner_kernel = StoredMatrix(inner_DF, storage)
    layer.outer_kernel = StoredMatrix(outer_FD, storage)
    layer.inner_bias = tf.Variable(np.pad(source.inner_bias.numpy(), [0, extra]), trainable=False)
    layer.outer_bias = _constant(source.outer_bias)
    layer.built = True


def _constant(variable: tf.Variable) -> tf.Variable:
    return tf.Variable(variable.numpy(), trainable=False)
