"""Inputs of encoders: checks, and defaults that follow from token ids."""

from __future__ import annotations

import numbers
from typing import Any

import tensorflow as tf

from official.xlnet.errors import DataError, require_data
from official.xlnet.modeling.ops.keras import is_building, require_same_keras
from official.xlnet.tokenization.special_tokens import (
    CLS_ID,
    PAD_ID,
    SEGMENT_CLS,
    SEGMENT_PAD,
    SEP_ID,
)

_AXES = {
    **dict.fromkeys(("order", "segment_ids", "is_padding"), ("batch", "tokens")),
    "perm_mask": ("batch", "tokens", "tokens"),
    "target_positions": ("batch", "targets"),
    **dict.fromkeys(("is_reversed", "memory_length"), ("batch",)),
    "memory": ("layers", "batch", "columns", "width"),
}
_OF_PREDICTION = ("order", "perm_mask", "target_positions")


def checked_inputs(
    inputs: dict[str, tf.Tensor] | tf.Tensor, known: set[str], vocab_size: int | None = None
) -> dict[str, tf.Tensor]:
    """The inputs of an encoder by name, as tensors, with `is_padding` and `segment_ids`.

    Args:
      inputs: token_ids alone, or a dictionary.
      known: names of the inputs that the encoder takes.
      vocab_size: number of ids; they are checked where their values are known.

    Raises:
      ValueError: an input is unknown, `token_ids` are not integers [B, T] with T > 0 or not of the
        vocabulary, or another input has a shape that does not fit them.
    """
    inputs = {name: value for name, value in by_name(inputs).items() if value is not None}
    require_same_keras(inputs)
    unknown = sorted(set(inputs) - known)
    if unknown:
        raise ValueError(f"unknown encoder inputs {unknown}; known: {sorted(known)}")
    for name, value in inputs.items():
        require_data(
            not isinstance(value, tf.RaggedTensor),
            name,
            "a dense tensor",
            "a ragged one: pad it with .to_tensor() and say in 'is_padding' where there is "
            "no token",
        )
    inputs = {name: tf.convert_to_tensor(value) for name, value in inputs.items()}
    if is_building():
        inputs["token_ids"] = tf.cast(inputs["token_ids"], tf.int32)
    inputs["token_ids"] = with_whole_numbers(inputs["token_ids"])
    token_ids = inputs["token_ids"]
    require_integers(token_ids)
    require_data(
        token_ids.shape.rank == 2,
        "token_ids",
        "the shape [batch, tokens]",
        f"{token_ids.shape}: a single text needs a batch axis, token_ids[None]",
    )
    require_data(
        token_ids.shape[1] != 0, "token_ids", "at least one token", f"the shape {token_ids.shape}"
    )
    if vocab_size is not None and tf.get_static_value(token_ids) is not None:
        require_known(token_ids, vocab_size)
    for name in _AXES.keys() & inputs.keys():
        _require_shape(name, inputs[name].shape, token_ids.shape)
    return with_defaults(inputs)


def _require_shape(name: str, shape: tf.TensorShape, shape_of_ids: tf.TensorShape) -> None:
    """Raises `DataError` for an input whose axes are not those of the token ids, or a single row.

    Other axes than of the batch and of its tokens may have any size.
    """
    if shape.rank is None:
        return
    axes, sizes = _AXES[name], dict(zip(("batch", "tokens"), shape_of_ids, strict=True))
    pairs = [(size, sizes.get(axis)) for size, axis in zip(shape, axes, strict=False)]
    require_data(
        shape.rank == len(axes)
        and all(size in (None, 1, wanted) or wanted in (None, 1) for size, wanted in pairs),
        name,
        f"the shape [{', '.join(axes)}] beside token_ids of {shape_of_ids}",
        shape,
    )


def with_whole_numbers(token_ids: tf.Tensor) -> tf.Tensor:
    """Ids of a floating type as integers, in a graph; others unchanged.

    `export` of a model of another class gives all its inputs the floating type of the model. The
    graph asserts that they are whole numbers.
    """
    is_known = tf.executing_eagerly() or tf.get_static_value(token_ids) is not None
    # Half precision does not hold every id.
    if is_known or token_ids.dtype not in (tf.float32, tf.float64):
        return token_ids
    ids = tf.cast(token_ids, tf.int32)
    is_whole = tf.reduce_all(tf.cast(ids, token_ids.dtype) == token_ids)
    tf.debugging.Assert(is_whole, ["token_ids: expected integers, got fractions"])
    return ids


def require_integers(token_ids: Any) -> None:
    """Raises `DataError` for ids, which may be symbolic, of another type than an integer."""
    dtype = tf.as_dtype(token_ids.dtype)
    expected = f"{dtype.name}: a Keras input needs dtype=tf.int32"
    require_data(dtype.is_integer, "token_ids", "integers", expected)


def require_known(token_ids: Any, vocab_size: int) -> None:
    """Raises `DataError` for ids outside the vocabulary, which XLA would replace by others.

    In a graph, it adds an assertion with the same sentence.
    """
    expected = f"ids from 0 to {vocab_size - 1}, the vocabulary of the model"
    ids = tf.get_static_value(token_ids)  # None in a graph.
    if ids is None:
        is_known = tf.reduce_all((token_ids >= 0) & (token_ids < vocab_size))
        tf.debugging.Assert(is_known, [f"token_ids: expected {expected}, got others"])
    elif ids.size:
        least, most = int(ids.min()), int(ids.max())
        is_known, got = 0 <= least <= most < vocab_size, f"ids from {least} to {most}"
        require_data(is_known, "token_ids", expected, got)


def rows_as_tensor(inputs: Any) -> Any:
    """Returns a list of rows of token ids of several lengths as a ragged tensor; others unchanged.

    Example:
      >>> rows_as_tensor([[5, 17], [8, 4, 3]])
      <tf.RaggedTensor [[5, 17], [8, 4, 3]]>
    """
    if not isinstance(inputs, list) or not all(isinstance(row, list) for row in inputs):
        return inputs
    are_ids = all(isinstance(x, numbers.Integral) for row in inputs for x in row)
    has_several_lengths = len({len(row) for row in inputs}) > 1
    return tf.ragged.constant(inputs, tf.int32) if are_ids and has_several_lengths else inputs


def by_name(inputs: dict[str, tf.Tensor] | tf.Tensor) -> dict[str, tf.Tensor]:
    """Returns the inputs as a dictionary; they may be only `token_ids`.

    Raises:
      DataError: the dictionary lacks `token_ids`.
    """
    if not isinstance(inputs, dict):
        return {"token_ids": inputs}
    if inputs.get("token_ids") is None:
        raise DataError(
            f"expected the encoder input 'token_ids', got only {sorted(inputs)}; what else there "
            "may be has a default"
        )
    return inputs


def predicts_tokens(inputs: dict[str, tf.Tensor]) -> bool:
    """Whether tokens are predicted, so that what they are says nothing about padding."""
    return any(inputs.get(name) is not None for name in _OF_PREDICTION)


def with_defaults(inputs: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    """Adds missing `is_padding` and `segment_ids`, which follow from `token_ids`.

    Token ids alone so give the same as all that `Tokenizer`, or `GraphTokenizer.pack`, returns:
    `<pad>` is padding, `<sep>` ends a segment, and `<cls>` has a segment of its own.

    With `order`, `perm_mask` or `target_positions`, where tokens are predicted, all is one segment
    without padding: what follows from a token must not reach those that predict it.

    Args:
      inputs: `token_ids` int [..., T], and others.

    Example:
      >>> ids = tf.constant([[5, 17, 42, 4, 99, 4, 3]])
      >>> with_defaults({"token_ids": ids})["segment_ids"]
      <tf.Tensor: shape=(1, 7), dtype=int32, numpy=array([[4, 0, 0, 0, 1, 1, 2]], dtype=int32)>
    """
    token_ids = inputs["token_ids"]
    are_predicted = predicts_tokens(inputs)
    is_padding = inputs.get("is_padding")
    if is_padding is None:
        is_padding = tf.zeros_like(token_ids, tf.bool) if are_predicted else token_ids == PAD_ID
    segment_ids = inputs.get("segment_ids")
    if segment_ids is None and are_predicted:
        segment_ids = tf.zeros_like(token_ids, tf.int32)
    elif segment_ids is None:
        is_end = tf.cast((token_ids == SEP_ID) & ~tf.cast(is_padding, tf.bool), tf.int32)
        num_ends = tf.cumsum(is_end, axis=-1, exclusive=True)
        of_cls = tf.maximum(num_ends, SEGMENT_CLS)
        segment_ids = tf.where(token_ids == CLS_ID, of_cls, num_ends)
        segment_ids += tf.cast(segment_ids >= SEGMENT_PAD, tf.int32)  # As in `segments_of`.
        segment_ids = tf.where(tf.cast(is_padding, tf.bool), SEGMENT_PAD, segment_ids)
    return {**inputs, "is_padding": is_padding, "segment_ids": segment_ids}
