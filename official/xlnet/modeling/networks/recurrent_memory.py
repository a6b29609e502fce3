"""The recurrent memory of a training or evaluation run: hidden states of earlier windows."""

from __future__ import annotations

import functools
from collections.abc import Callable

import tensorflow as tf

from official.xlnet.errors import require_data

_VALUE = "VARIABLE_VALUE"  # As TensorFlow calls the value of a variable in a checkpoint.

# In the place of the window of a row of the memory.
_NOTHING, _UNKNOWN = -2, -3


class Memory(tf.Module):
    """Hidden states [L, B, M, D], one row for each row of the batch.

    Each replica has its own: the variable is neither synchronised nor summed. A row's state is
    valid for as many columns as its next window's `context_length` says, so it never needs to
    be zeroed. It knows the window of each row: data in another order, or dealt out to
    other rows, must not see the memory of another document.

    A checkpoint holds the rows of all replicas side by side, in the order of the batch, unless
    `is_saved` is False. Another number of replicas deals them out anew; with another batch size
    rows are cut off, or zeros added, at the end.

    Args:
      num_layers: L.
      batch_size: rows B of one replica.
      length: M.
      width: D.
      dtype: floating type.

    Attributes:
      is_saved: whether checkpoints hold the rows; see `saved_bytes`.
    """

    # As of a variable with a value for each replica: all workers take part when it is saved.
    synchronization = tf.VariableSynchronization.ON_READ

    def __init__(self, num_layers: int, batch_size: int, length: int, width: int, dtype=tf.float32):
        super().__init__(name="memory")
        self.is_saved = True
        self._strategy = tf.distribute.get_strategy()
        self._dtype = tf.as_dtype(dtype)
        replicated = {}
        if self._strategy.num_replicas_in_sync > 1:
            replicated = {
                "synchronization": tf.VariableSynchronization.ON_READ,
                "aggregation": tf.VariableAggregation.NONE,
            }
        self.states = tf.Variable(
            tf.zeros([num_layers, batch_size, length, width], _stored_type(self._dtype)),
            trainable=False,
            name="states",
            **replicated,
        )
        self._window_ids = tf.Variable(
            tf.fill([batch_size], tf.constant(_NOTHING, tf.int64)),
            trainable=False,
            name="window_ids",
            **replicated,
        )

    @property
    def saved_bytes(self) -> int:
        """Size of the rows of all replicas in a checkpoint, in bytes."""
        return self.states.shape.num_elements() * self._num_replicas * tf.float32.size

    @property
    def _num_replicas(self) -> int:
        return self._strategy.num_replicas_in_sync

    def read(self, batch_size: int) -> tf.Tensor:
        """The first `batch_size` rows, [L, batch_size, M, D]."""
        rows = self.states.shape[1]
        if batch_size > rows:
            raise ValueError(
                f"the memory has {rows} rows a replica, a batch of {batch_size} needs more: "
                "set training.batch_size to the batch size of the data"
            )
        return self._values(self.states)[:, :batch_size]

    def is_of(self, window_id_B: tf.Tensor) -> tf.Tensor:
        """Whether the first rows come from these windows, bool [B].

        Rows that were restored, or written without window, are taken for what they should be.
        """
        own_B = tf.convert_to_tensor(self._window_ids)[: window_id_B.shape[0]]
        return (own_B == _UNKNOWN) | (own_B == tf.cast(window_id_B, tf.int64))

    def write(self, states_LBMD: tf.Tensor, window_id_B: tf.Tensor | None = None) -> None:
        """Replaces the first rows.

        Values that are not finite become 0: attention gives masked columns the weight 0, and
        0 · NaN would be NaN in every later step.
        """
        states = tf.cast(states_LBMD, self._dtype)
        states = tf.where(tf.math.is_finite(states), states, tf.zeros_like(states))
        if states.shape[1] < self.states.shape[1]:
            rest = self._values(self.states)[:, states.shape[1] :]
            states = tf.concat([states, rest], axis=1)
        self.states.assign(_as_type(states, self.states.dtype))
        ids = tf.convert_to_tensor(self._window_ids)
        num_rows = states_LBMD.shape[1]
        if window_id_B is None:
            window_id_B = tf.fill([num_rows], tf.constant(_UNKNOWN, tf.int64))
        ids = tf.concat([tf.cast(window_id_B, tf.int64), ids[num_rows:]], axis=0)
        self._window_ids.assign(ids)

    def gather(self) -> tf.Tensor:
        """The rows of all replicas, float32 [L, replicas · B, M, D]; all workers have to ask."""
        local = self._strategy.experimental_local_results(self.states)
        if len(local) < self._num_replicas:
            return self._strategy.experimental_local_results(self._gather_from_workers())[0]
        values = [self._values(states) for states in local]
        return tf.cast(tf.concat(values, axis=1), tf.float32)

    @functools.cached_property
    def _gather_from_workers(self) -> Callable:
        """Traced once."""

        def gather():
            # The identity is on the replica's device; the value of a variable is on none.
            states = tf.identity(tf.cast(self._values(self.states), tf.float32))
            return tf.distribute.get_replica_context().all_gather(states, axis=1)

        return tf.function(lambda: self._strategy.run(gather), autograph=False)

    def scatter(self, states_LBMD: tf.Tensor) -> None:
        """Gives each replica its rows of what `gather` returned."""
        layers, rows, length, width = self.states.shape
        expected = [layers, None, length, width]
        require_data(
            states_LBMD.shape.is_compatible_with(expected),
            "memory",
            str(expected),
            states_LBMD.shape.as_list(),
        )
        num_rows = rows * self._num_replicas
        missing = max(0, num_rows - states_LBMD.shape[1])
        states_LBMD = tf.pad(states_LBMD, [[0, 0], [0, missing], [0, 0], [0, 0]])
        # One worker holds the variables of its own replicas only.
        ids = self._strategy.experimental_distribute_values_from_function(
            lambda context: tf.constant(context.replica_id_in_sync_group)
        )
        local = self._strategy.experimental_local_results
        own_ids = local(self._window_ids)
        for variable, windows, replica in zip(local(self.states), own_ids, local(ids), strict=True):
            rows_of_replica = tf.slice(states_LBMD, [0, replica * rows, 0, 0], variable.shape)
            windows.assign(tf.fill([rows], tf.constant(_UNKNOWN, tf.int64)))
            values = tf.cast(rows_of_replica, self._dtype)
            variable.assign(_as_type(values, variable.dtype))

    def _values(self, states: tf.Variable) -> tf.Tensor:
        return _as_type(tf.convert_to_tensor(states), self._dtype)

    def _trackable_children(self, save_type="checkpoint", **kwargs):
        """Returns nothing, as the variable of one replica is not the whole state."""
        return {}

    def _export_to_saved_model_graph(self, object_map, tensor_map=None, options=None, **kwargs):
        """A SavedModel holds no rows: a model loaded from it starts with an empty memory."""
        object_map[self] = tf.Module()
        return []

    def _serialize_to_tensors(self):
        if not self.is_saved:
            return {}
        # In float32, which holds all of bfloat16: a run may go on in another precision.
        return {_VALUE: self.gather()}

    def _restore_from_tensors(self, restored_tensors):
        self.scatter(restored_tensors[_VALUE])


def _stored_type(dtype: tf.DType) -> tf.DType:
    """The type of the variable: float16 for the bits of bfloat16 on several workers.

    The first worker sends initial values to the others, and TensorFlow has no such operation for
    bfloat16.
    """
    strategy = tf.distribute.get_strategy()
    num_replicas = strategy.num_replicas_in_sync
    if dtype != tf.bfloat16 or num_replicas == 1:
        return dtype
    has_workers = len(strategy.extended.worker_devices) < num_replicas
    return tf.float16 if has_workers else dtype


def _as_type(values: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """The same bits as another type of the same size."""
    return values if values.dtype == dtype else tf.bitcast(values, dtype)
