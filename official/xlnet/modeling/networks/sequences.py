"""The sequences of a unit, read each by itself, or one after the other with memory."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

from official.xlnet.modeling.ops.shapes import sizes

TOKEN_INPUTS = ("token_ids", "segment_ids", "is_padding")

# From inputs [U, T] of a sequence, with `memory` and `memory_length` where there is one, and its
# number, to vectors [U, T or 1, D] and the memory of the next sequence.
Read = Callable[[dict[str, tf.Tensor], int], tuple[tf.Tensor, tf.Tensor | None]]


def read_sequences(
    read: Read, inputs: dict[str, tf.Tensor], with_memory: bool, pooled_segments: str
) -> tf.Tensor:
    """Returns vectors [U, S, T, D] of sequences of units; T is 1 if `read` returns the last row.

    Args:
      read: reads a sequence.
      inputs: `TOKEN_INPUTS`, [U, S, T].
      with_memory: whether a sequence sees the earlier ones through memory; else they do not see
        each other, and are read as rows of one batch. Gradients do not flow into memory.
      pooled_segments: with memory, `all`, or `last`: S is 1 then.
    """
    if not with_memory:
        _, sequences, tokens = sizes(inputs["token_ids"])
        rows = {name: tf.reshape(inputs[name], [-1, tokens]) for name in TOKEN_INPUTS}
        vectors_XTD, _ = read(rows, 0)
        return tf.reshape(vectors_XTD, [-1, sequences, *sizes(vectors_XTD)[1:]])
    num_real_US = tf.reduce_sum(tf.cast(~inputs["is_padding"], tf.int32), axis=2)
    memory_length_US = tf.cumsum(num_real_US, axis=1, exclusive=True)
    memory, vectors_UTD = None, []
    for number in range(inputs["token_ids"].shape[1]):
        window = {name: inputs[name][:, number] for name in TOKEN_INPUTS}
        if memory is not None:
            window |= {"memory": memory, "memory_length": memory_length_US[:, number]}
        vectors, memory = read(window, number)
        vectors_UTD.append(vectors)
    return tf.stack(vectors_UTD[None if pooled_segments == "all" else -1 :], axis=1)
