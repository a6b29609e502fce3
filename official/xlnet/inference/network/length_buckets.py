"""Rows of a batch in groups of about equal length, so that a short text costs little."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import tensorflow as tf

Tensors = dict[str, tf.Tensor]
_SHORTEST = 16  # Tokens of the shortest default length.
_TOKENS_AT_ONCE = 16384  # Rows times their length: bounds the memory that a request takes.


def in_buckets(
    function: Callable[[Tensors], Tensors], lengths: Sequence[int], per_token: Sequence[str] = ()
) -> Callable[[Tensors], Tensors]:
    """Returns a function that runs another one on rows of about equal length.

    Rows are cut to the shortest of some lengths that holds them. Rows of one length go through the
    function together, in their order; lengths that no row needs cost nothing. Every signature that
    uses the result shares its graphs.

    Args:
      function: {name: [U, …, T]} with static T → {name: [U, …]}.
      lengths: the lengths, ascending.
      per_token: outputs [U, T, …]; they are padded with zeros on the left to one length.

    Returns:
      A function of inputs [U, …, T], T the longest length; `is_padding` is one of them.
    """
    # A branch that is not taken must not cost the walk through its operations.
    graphs = tf.function(function, autograph=False, experimental_attributes={"_noinline": True})

    def run_in_buckets(inputs: Tensors) -> Tensors:
        needed = tf.reduce_sum(tf.cast(~inputs["is_padding"], tf.int32), axis=-1)
        needed_U = tf.reduce_max(needed, axis=list(range(1, needed.shape.rank)))
        length_L = tf.constant(lengths)
        bucket_U = tf.reduce_sum(tf.cast(needed_U[:, None] > length_L[:-1], tf.int32), axis=1)
        longest = tf.gather(length_L, tf.reduce_max(tf.concat([[0], bucket_U], axis=0)))
        index, parts = [], []
        for bucket, length in enumerate(lengths):
            rows = tf.cast(tf.where(bucket_U == bucket)[:, 0], tf.int32)
            index.append(rows)
            parts.append(_part(graphs, inputs, rows, length, longest, per_token))
        order = tf.math.invert_permutation(tf.concat(index, axis=0))
        return {
            name: tf.gather(tf.concat([part[name] for part in parts], axis=0), order)
            for name in parts[0]
        }

    whole = tf.function(run_in_buckets, autograph=False, reduce_retracing=True)
    # As the attribute of a module it would be traced and written once more when that is saved.
    return lambda inputs: whole(inputs)


def _part(graphs, inputs, rows, length, longest, per_token):
    """Outputs of some rows, cut to a length; none of the work where there are no rows."""
    specs = {
        name: tf.TensorSpec([None, *x.shape[1:-1], length], x.dtype) for name, x in inputs.items()
    }
    run = graphs.get_concrete_function(specs)

    def call(chosen):
        return run({name: tf.gather(x, chosen)[..., -length:] for name, x in inputs.items()})

    sequences = math.prod(next(iter(inputs.values())).shape[1:-1])
    at_once = max(1, _TOKENS_AT_ONCE // (length * sequences))

    def some():
        outputs = tf.cond(
            tf.size(rows) <= at_once,
            lambda: dict(call(rows)),
            lambda: _in_parts(call, rows, at_once, run.structured_outputs),
        )
        missing = [[0, 0], [longest - length, 0]]
        padded = {}
        for name, x in outputs.items():
            if name in per_token:
                x = tf.pad(x, missing + [[0, 0]] * (x.shape.rank - 2))
            padded[name] = x
        return padded

    def none():  # The longest length that is needed may be less than this one.
        empty = {}
        for name, x in run.structured_outputs.items():
            shape = [0, longest, *x.shape[2:]] if name in per_token else [0, *x.shape[1:]]
            empty[name] = tf.zeros(shape, x.dtype)
        return empty

    return tf.cond(tf.size(rows) > 0, some, none)


def _in_parts(call, rows, at_once, specs):
    """`call(rows)`, a few rows at a time."""
    num_parts = (tf.size(rows) + at_once - 1) // at_once
    arrays = {
        name: tf.TensorArray(
            x.dtype,
            num_parts,
            infer_shape=False,
            element_shape=tf.TensorShape([None, *x.shape[1:]]),
        )
        for name, x in specs.items()
    }

    def step(index, arrays):
        outputs = call(rows[index * at_once : (index + 1) * at_once])
        return index + 1, {name: arrays[name].write(index, x) for name, x in outputs.items()}

    _, arrays = tf.while_loop(
        lambda index, _: index < num_parts, step, (0, arrays), parallel_iterations=1
    )
    return {name: array.concat() for name, array in arrays.items()}


def default_lengths(max_length: int, shortest: int = _SHORTEST) -> tuple[int, ...]:
    """Powers of two from 16 on, and `max_length`.

    Example:
      >>> default_lengths(100)
      (16, 32, 64, 100)
    """
    lengths, length = [max_length], _SHORTEST
    while length < max_length:
        if length >= shortest:
            lengths.append(length)
        length *= 2
    return tuple(sorted(lengths))
