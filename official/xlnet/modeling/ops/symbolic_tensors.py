"""Symbolic tensors: those that Keras builds a model with, and masks in a functional model.

To build a model of another class around an encoder, as when it is loaded, Keras calls it with
placeholders of a floating type, whatever its inputs are.

Keras 3 drops the mask that a layer sets inside `call`, and `MultiHeadAttention` deletes the mask of
its inputs while a model runs. A layer that reads the same tensor afterwards has its mask only if
the mask is part of the model's graph, as that of `keras.layers.Embedding` is.
"""

from __future__ import annotations

from typing import Any

from official.xlnet.modeling.ops.keras import IS_KERAS_3, keras
from official.xlnet.tokenization.special_tokens import PAD_ID


def is_symbolic(tensor: Any) -> bool:
    """Whether a tensor is a part of the graph of a functional model of Keras 3."""
    return IS_KERAS_3 and keras.backend.is_keras_tensor(tensor)


def set_symbolic_mask(content: Any, token_ids: Any, is_padding: Any, num_rows: int | None) -> None:
    """Sets the mask of a symbolic tensor.

    Args:
      content: tensor [B, rows, D] of the last rows of the tokens.
      token_ids: int [B, T].
      is_padding: bool [B or 1, T]; None: `<pad>` is padding.
      num_rows: number of rows; None for T.
    """
    if is_padding is None:
        is_real = keras.ops.not_equal(token_ids, PAD_ID)
    else:
        # `greater_equal` is true everywhere: it gives the mask the shape of the ids.
        is_token = keras.ops.greater_equal(token_ids, token_ids)
        is_real = keras.ops.logical_and(is_token, keras.ops.logical_not(is_padding))
    if num_rows is not None:
        is_real = is_real[:, -num_rows:]
    content._keras_mask = is_real
