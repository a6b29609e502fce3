"""Word embeddings, looked up for tokens and tied to the language-model head."""

from __future__ import annotations

import tensorflow as tf


@tf.custom_gradient
def look_up(table_VD: tf.Tensor, token_ids_BT: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Rows of a table, and the table itself for a tied head.

    The gradient of the table is one array: the head's, to which the gradients of the rows are
    added in place. Summed as two gradients of one variable they would cost three more copies in
    memory, but no time that can be measured.
    It is computed last, so that this largest of all gradients does not lie in memory during the
    backward pass.

    Args:
      table_VD: [V, D].
      token_ids_BT: int32 [B, T].

    Returns:
      [B, T, D], and the table as the head must read it.
    """

    def gradient(d_rows_BTD, d_table_VD):
        if not tf.executing_eagerly():
            d_table_VD.op._add_control_input(d_rows_BTD.op)  # There is no public way to say so.
        return tf.tensor_scatter_nd_add(d_table_VD, token_ids_BT[..., None], d_rows_BTD), None

    return (tf.gather(table_VD, token_ids_BT), tf.identity(table_VD)), gradient
