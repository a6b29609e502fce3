"""Encoders for inference: a packed copy of XLNet's, and the layers of any other network."""

from __future__ import annotations

import tensorflow as tf

from official.xlnet.configs.validation import require
from official.xlnet.inference.network.packed_encoder import PackedEncoder, PackedOutputs
from official.xlnet.modeling.networks import Encoder
from official.xlnet.modeling.networks.xlnet_encoder import XLNetEncoder
from official.xlnet.modeling.objectives.permutation_sampling import causal_order
from official.xlnet.modeling.ops.shapes import sizes


class LayerEncoder(tf.Module):
    """An encoder's own layers, called as a `PackedEncoder` is.

    Args:
      encoder: a built encoder; its variables are shared.
      num_layers: layers to compute, from the first on; by default all of them.
    """

    def __init__(self, encoder: Encoder, num_layers: int | None = None):
        super().__init__(name="encoder")
        # A Keras layer would be saved with all its training; the graph needs the variables.
        self._call = lambda inputs: encoder(inputs, return_hidden_states=True)
        self._is_causal = encoder.config.reads_left_to_right
        self._variables = list(encoder.variables)
        self._layer = -1 if num_layers is None else num_layers

    def __call__(
        self,
        token_ids: tf.Tensor,
        is_padding: tf.Tensor,
        segment_ids: tf.Tensor | None = None,
        last_only: bool = False,
    ) -> PackedOutputs:
        """Vectors of the content stream; arguments and outputs as of `PackedEncoder`."""
        inputs = {"token_ids": token_ids, "is_padding": is_padding, "segment_ids": segment_ids}
        if self._is_causal:
            inputs["order"] = causal_order(*sizes(token_ids))
        vectors_BTD = tf.cast(self._call(inputs)["hidden_states"][self._layer], tf.float32)
        return PackedOutputs(vectors_BTD[:, -1:] if last_only else vectors_BTD, None)


def inference_encoder(
    encoder: Encoder,
    max_length: int,
    num_segments: int | None = None,
    storage: str = "float32",
    with_memory: bool = False,
    num_layers: int | None = None,
) -> PackedEncoder | LayerEncoder:
    """Creates the fastest form of an encoder for inference.

    Args:
      encoder: a built encoder.
      max_length: see `PackedEncoder`, as the next ones.
      num_segments: number of segments of an input.
      storage: how matrices are stored; `float32` for other networks than XLNet.
      with_memory: whether memory is taken and returned.
      num_layers: layers to compute.

    Raises:
      ConfigError: the network cannot be stored like this.
    """
    if isinstance(encoder, XLNetEncoder):
        return PackedEncoder(encoder, max_length, num_segments, storage, with_memory, num_layers)
    network = encoder.config.model.network
    require(storage == "float32", "weights", f"float32 with model.network={network}", storage)
    return LayerEncoder(encoder, num_layers)
