"""Request validation as TensorFlow operations; the server reports failures as INVALID_ARGUMENT."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from official.xlnet.tokenization.special_tokens import SEGMENT_PAD


def checked_text(name: str, text: tf.Tensor, max_characters: int) -> tf.Tensor:
    """Checks that no text has more than `max_characters` characters.

    Args:
      name: name of the input, for the error message.
      text: string [...].
      max_characters: maximum length in code points.

    Returns:
      `text`.
    """
    lengths = tf.strings.length(tf.reshape(text, [-1]), unit="UTF8_CHAR")
    longest = tf.reduce_max(tf.concat([[0], lengths], axis=0))
    message = [
        f"{name}: expected texts of up to {max_characters} characters, got ",
        tf.strings.as_string(longest),
    ]
    return check(longest <= max_characters, message, text)


def checked_windows(name: str, num_windows: tf.Tensor, most: int) -> tf.Tensor:
    """Checks that no text has more than `most` windows.

    Args:
      name: name of the input, for the error message.
      num_windows: number of windows of each text, int32 [B].
      most: maximum number of windows.

    Returns:
      `num_windows`.
    """
    largest = tf.reduce_max(tf.concat([[0], num_windows], axis=0))
    message = [f"{name}: expected up to {most} windows, got ", tf.strings.as_string(largest)]
    return check(tf.reduce_all(num_windows <= most), message, num_windows)


def checked_rows(**columns: tf.Tensor) -> list[tf.Tensor]:
    """Checks that all inputs have the same number of rows and returns them in order."""
    names, tensors = list(columns), list(columns.values())
    counts = [tf.shape(tensor)[0] for tensor in tensors]
    are_equal = tf.reduce_all(tf.stack(counts) == counts[0])
    got = tf.strings.reduce_join(tf.strings.as_string(tf.stack(counts)), separator=", ")
    message = [f"inputs {', '.join(names)}: expected equal numbers of rows, got ", got]
    return [check(are_equal, message, tensor) for tensor in tensors]


def checked_tokens(
    inputs: dict[str, tf.Tensor], vocab_size: int, num_segments: int, max_length: int
) -> dict[str, tf.Tensor]:
    """Checks token inputs: equal shapes, ids and segments in range, padding on the left.

    Args:
      inputs: tensors [..., T], among them `token_ids` and `segment_ids`, int32.
      vocab_size: V.
      num_segments: number of valid segment ids.
      max_length: maximum T.

    Returns:
      The inputs.

    Raises:
      InvalidArgumentError: when run, if a check fails.
    """
    token_ids, segment_ids = inputs["token_ids"], inputs["segment_ids"]
    is_padding = segment_ids == SEGMENT_PAD
    shape = tf.shape(token_ids)
    smallest = tf.reduce_min(tf.concat([[0], tf.reshape(token_ids, [-1])], axis=0))
    largest = tf.reduce_max(tf.concat([[0], tf.reshape(token_ids, [-1])], axis=0))
    wrong_id = tf.where(smallest < 0, smallest, largest)
    shapes = [tf.shape(x) for x in inputs.values()]
    shape_texts = [tf.strings.format("{}", x) for x in shapes]
    checks: list[tuple[tf.Tensor, Sequence]] = [
        (
            tf.reduce_all([tf.reduce_all(x == shape) for x in shapes]),
            [
                f"inputs {', '.join(inputs)}: expected one shape, got ",
                tf.strings.join(shape_texts, separator=", "),
            ],
        ),
        (
            shape[-1] <= max_length,
            [
                f"token_ids: expected up to {max_length} tokens, got ",
                tf.strings.as_string(shape[-1]),
            ],
        ),
        (
            (smallest >= 0) & (largest < vocab_size),
            [
                f"token_ids: expected ids from 0 to {vocab_size - 1}, got ",
                tf.strings.as_string(wrong_id),
            ],
        ),
        (
            tf.reduce_all(is_padding | ((segment_ids >= 0) & (segment_ids < num_segments))),
            [f"segment_ids: expected 0 to {num_segments - 1}, or {SEGMENT_PAD} for padding"],
        ),
        (
            tf.reduce_all(is_padding[..., :-1] | ~is_padding[..., 1:]),
            [f"segment_ids: expected padding ({SEGMENT_PAD}) on the left of the tokens only"],
        ),
    ]
    for condition, message in checks:
        inputs = {name: check(condition, message, x) for name, x in inputs.items()}
    return inputs


def check(condition: tf.Tensor, message: Sequence, tensor: tf.Tensor) -> tf.Tensor:
    """Returns `tensor` if `condition` holds, else fails with `InvalidArgumentError`.

    Args:
      condition: scalar bool.
      message: parts of the error message, strings or scalar string tensors.
      tensor: the tensor to return.
    """
    with tf.control_dependencies([tf.debugging.Assert(condition, [tf.strings.join([*message])])]):
        return tf.identity(tensor)
