"""Symbolic tensors: those that Keras builds a model with, and masks in a functional model.

To build a model of another class around an encoder, as when it is loaded, Keras calls it with
placeholders of a floating type, whatever its inputs are.

Keras 3 drops the mask that a layer sets inside `call`, and `MultiHeadAttention` deletes the mask of
its inputs while a model runs. A layer that reads the same tensor afterwards has its mask only if
the mask is part of the model's graph, as that of `keras.layers.Embedding` is.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from official.xlnet.modeling.ops.keras import Layer, is_symbolic, keras
from official.xlnet.tokenization.special_tokens import PAD_ID


def integer_ids(token_ids: Any) -> Any:
    """Symbolic ids as integers: `keras.Sequential` without an `Input` begins with floats.

    Those of half precision, which do not hold every id, are returned as they are.
    """
    is_exact = is_symbolic(token_ids) and token_ids.dtype in ("float32", "float64")
    return keras.ops.cast(token_ids, "int32") if is_exact else token_ids


@keras.utils.register_keras_serializable(package="xlnet")
class PaddingMask(Layer):
    """Keras mask of a part of the content rows: a layer, so that every format of Keras keeps it.

    Attributes:
      num_rows: number of last rows that the mask is of; None for all.
    """

    def __init__(self, num_rows: int | None = None, **kwargs: Any):
        super().__init__(**kwargs)
        self.num_rows = num_rows

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "num_rows": self.num_rows}

    def call(self, inputs: list[tf.Tensor]) -> tf.Tensor:
        """Returns bool [B, num_rows], true where there is a token.

        Args:
          inputs: the ids, int [B, T]; then, if given, which are padding, bool [B or 1, T]. Without
            them `<pad>` is padding.
        """
        token_ids_BT, *is_padding = inputs
        is_real_BT = token_ids_BT != PAD_ID
        if is_padding:
            is_real_BT = tf.broadcast_to(~is_padding[0], tf.shape(token_ids_BT))
        return is_real_BT if self.num_rows is None else is_real_BT[:, -self.num_rows :]


def set_symbolic_mask(content: Any, token_ids: Any, is_padding: Any, num_rows: int | None) -> None:
    """Sets the mask of a symbolic tensor.

    Args:
      content: tensor [B, rows, D] of the last rows of the tokens.
      token_ids: int [B, T].
      is_padding: bool [B or 1, T]; None: `<pad>` is padding.
      num_rows: number of rows; None for T.
    """
    inputs = [token_ids] if is_padding is None else [token_ids, is_padding]
    content._keras_mask = PaddingMask(num_rows)(inputs)
