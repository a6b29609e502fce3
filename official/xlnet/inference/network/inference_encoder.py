"""Encoders for inference: prediction, scoring, embedding and serving."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import tensorflow as tf

from official.xlnet.configs.validation import require
from official.xlnet.errors import require_data
from official.xlnet.modeling.networks import Encoder
from official.xlnet.modeling.networks.stored_encoder import stored_encoder
from official.xlnet.modeling.networks.xlnet_encoder import XLNetEncoder
from official.xlnet.modeling.objectives.permutation_sampling import causal_order
from official.xlnet.modeling.ops.keras import tf_variables
from official.xlnet.modeling.ops.shapes import sizes

Outputs = TypeVar("Outputs")


def finite(outputs: Outputs) -> Outputs:
    """Returns the outputs of a model unchanged.

    Weights are checked when they are loaded; large finite ones can still overflow in between.

    Args:
      outputs: a tensor or array, or any nest of them.

    Raises:
      DataError: one of them has NaN or infinity.

    Example:
      >>> finite(np.array([1.0, np.nan]))
      Traceback (most recent call last):
      official.xlnet.errors.DataError: outputs of the model: expected finite numbers, got NaN or …
    """
    for output in tf.nest.flatten(outputs):
        values = np.asarray(output)
        require_data(
            not np.issubdtype(values.dtype, np.floating) or bool(np.isfinite(values).all()),
            "outputs of the model",
            "finite numbers",
            "NaN or infinity: its activations overflow, as after a training run that "
            "diverged; take an earlier checkpoint",
        )
    return outputs


# Vectors float32 [B, X, D] of the rows that were asked for, and hidden states float32 [L, B, M, D]
# for the next window; None without memory.
VectorsAndMemory = tuple[tf.Tensor, tf.Tensor | None]


class InferenceEncoder(tf.Module):
    """The layers of an encoder for inference, without dropout and for text that is not reversed.

    XLNet's weights are copied (`stored_encoder`), the variables of other networks are shared.

    Args:
      encoder: a built encoder.
      max_length: largest number of tokens T of an input.
      storage: how matrices are stored; one of `WEIGHT_STORAGE`, `float32` for networks other than
        XLNet.
      with_memory: whether `memory` is taken and returned, with `mem_len` columns.
      num_layers: layers to compute, from the first on; by default all of them.

    Attributes:
      is_stored: whether the weights are copied, as with XLNet.
      embedding: the word embedding [V, D] of XLNet, a `StoredMatrix`.

    Raises:
      ConfigError: the network cannot be stored like this.

    Example:
      >>> network = InferenceEncoder(encoder, max_length=512)
      >>> network(token_ids, is_padding, segment_ids)[0].shape
      TensorShape([2, 512, 768])
    """

    def __init__(
        self,
        encoder: Encoder,
        max_length: int,
        storage: str = "float32",
        with_memory: bool = False,
        num_layers: int | None = None,
    ):
        super().__init__(name="encoder")
        self._is_causal = encoder.config.reads_left_to_right
        self._layer = -1 if num_layers is None else num_layers
        self.is_stored = isinstance(encoder, XLNetEncoder)
        if isinstance(encoder, XLNetEncoder):
            mem_len = encoder.mem_len if with_memory else 0
            encoder, self._variables = stored_encoder(
                encoder, max_length, storage, mem_len, num_layers
            )
            self.embedding = encoder.word_embedding
        else:
            network = encoder.config.model.network
            require(
                storage == "float32", "weights", f"float32 with model.network={network}", storage
            )
            self._variables = tf_variables(encoder)
        # A Keras layer would be saved with all its training; the graph needs the variables.
        self._call = lambda inputs, **options: encoder(inputs, **options)

    def __call__(
        self,
        token_ids: tf.Tensor,
        is_padding: tf.Tensor,
        segment_ids: tf.Tensor | None = None,
        memory: tf.Tensor | None = None,
        memory_length: tf.Tensor | None = None,
        last_only: bool = False,
        layers: Sequence[int] = (),
    ) -> VectorsAndMemory:
        """Vectors of the content stream.

        Args:
          token_ids: int32 [B, T], T static and at most `max_length`.
          is_padding: bool [B, T].
          segment_ids: int32 [B, T]; by default all tokens are in segment 0.
          memory: [L, B, mem_len, D], the memory of the window before.
          memory_length: int32 [B], how many of its last columns belong to the same document.
          last_only: whether only the last row is wanted.
          layers: layers whose vectors are wanted side by side, from 0; by default the last one.

        Returns:
          Vectors [B, T, D], [B, 1, D] with `last_only`; and the memory, except with `layers`.
        """
        inputs = {
            "token_ids": token_ids,
            "is_padding": is_padding,
            "segment_ids": tf.zeros_like(token_ids) if segment_ids is None else segment_ids,
            "order": causal_order(*sizes(token_ids)) if self._is_causal else None,
            "memory": memory,
            "memory_length": memory_length,
        }
        if self.is_stored and not layers:
            outputs = self._call(inputs, num_content=1 if last_only else None)
            return outputs["content"], outputs.get("memory")
        hidden_states = self._call(inputs, return_hidden_states=True)["hidden_states"]
        wanted = [hidden_states[layer] for layer in layers or (self._layer,)]
        vectors_BTD = tf.cast(tf.concat(wanted, axis=-1), tf.float32)
        return vectors_BTD[:, -1:] if last_only else vectors_BTD, None

    def in_order(
        self,
        token_ids: tf.Tensor,
        is_padding: tf.Tensor,
        order: tf.Tensor,
        target_positions: tf.Tensor | None = None,
        memory: tf.Tensor | None = None,
        memory_length: tf.Tensor | None = None,
    ) -> VectorsAndMemory:
        """Vectors of XLNet's query stream: each target, given the tokens before it in an order.

        Args:
          token_ids: int32 [B, T], T static and at most `max_length`.
          is_padding: bool [B, T].
          order: int32 [B, T], or [1, T] for all rows alike; see `XLNetEncoder`.
          target_positions: int32 [B, P], or [1, P] for all rows alike; by default all T positions.
          memory: see `__call__`.
          memory_length: see `__call__`.

        Returns:
          Vectors [B, P, D]; and the memory.
        """
        if target_positions is None:
            target_positions = last_positions(token_ids.shape[1], token_ids.shape[1])
        inputs = {
            "token_ids": token_ids,
            "is_padding": is_padding,
            "order": order + tf.zeros_like(token_ids),
            "target_positions": target_positions,
            "memory": memory,
            "memory_length": memory_length,
        }
        outputs = self._call(inputs, num_content=0)
        return outputs["query"], outputs.get("memory")


def last_positions(num_targets: int, num_tokens: int) -> tf.Tensor:
    """The last positions of a window, int32 [1, P]: a constant, whose scores cost less."""
    return tf.constant(np.arange(num_tokens - num_targets, num_tokens)[None], tf.int32)
