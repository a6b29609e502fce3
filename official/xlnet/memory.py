"""The recurrent memory of a training or evaluation run: hidden states of earlier windows."""

from __future__ import annotations

import tensorflow as tf


class Memory(tf.Module):
    """Hidden states [L, B, M, D], one row for each row of the batch.

    Each replica has its own: the variable is neither synchronised nor summed. A row's state is
    valid for as many columns as its next window's `context_length` says, so it never needs to
    be zeroed.

    Args:
      num_layers: L.
      batch_size: rows B of one replica.
      length: M.
      width: D.
      dtype: floating type.
    """

    def __init__(self, num_layers: int, batch_size: int, length: int, width: int, dtype=tf.float32):
        super().__init__(name="memory")
        replicated = {}
        if tf.distribute.get_strategy().num_replicas_in_sync > 1:
            replicated = {
                "synchronization": tf.VariableSynchronization.ON_READ,
                "aggregation": tf.VariableAggregation.NONE,
            }
        self.states = tf.Variable(
            tf.zeros([num_layers, batch_size, length, width], dtype),
            trainable=False,
            name="states",
            **replicated,
        )

    def read(self, batch_size: int) -> tf.Tensor:
        """The first `batch_size` rows, [L, batch_size, M, D]."""
        rows = self.states.shape[1]
        if batch_size > rows:
            raise ValueError(
                f"the memory has {rows} rows a replica, a batch of {batch_size} needs more: "
                "set training.batch_size to the batch size of the data"
            )
        return tf.convert_to_tensor(self.states)[:, :batch_size]

    def write(self, states_LBMD: tf.Tensor) -> None:
        """Replaces the first rows."""
        states = tf.cast(states_LBMD, self.states.dtype)
        if states.shape[1] < self.states.shape[1]:
            rest = tf.convert_to_tensor(self.states)[:, states.shape[1] :]
            states = tf.concat([states, rest], axis=1)
        self.states.assign(states)
