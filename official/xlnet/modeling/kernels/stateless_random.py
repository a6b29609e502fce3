"""Random numbers that depend on the window and on nothing else.

Targets and orders are drawn on the device, again in every epoch. A draw is a pure function of
(seed, epoch, window id, stream, index), so it is the same after a resume, on any number of
workers, in any row of any batch, and with or without XLA.

The generator is Threefry-2x32 with 20 rounds (Salmon et al., *Parallel Random Numbers: As Easy
as 1, 2, 3*, SC 2011), the one that JAX uses: a block cipher whose key says who draws and whose
counter says which number. It is elementwise arithmetic on uint32, so it runs the same anywhere.
"""

from __future__ import annotations

import tensorflow as tf

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA
_LOW_32_BITS = 0xFFFFFFFF


@tf.function(autograph=False)  # One operation of a graph instead of three hundred.
def threefry_2x32(
    key: tuple[tf.Tensor, tf.Tensor], counter: tuple[tf.Tensor, tf.Tensor]
) -> tuple[tf.Tensor, tf.Tensor]:
    """Encrypts 64-bit counters under 64-bit keys: Threefry-2x32, 20 rounds.

    Args:
      key: two uint32 tensors, the words of the key.
      counter: two uint32 tensors, the words of the counter; all four broadcast.

    Returns:
      Two uint32 tensors of the broadcast shape. Under one key, different counters give
      different outputs.
    """
    keys = (*key, key[0] ^ key[1] ^ _word(_PARITY))
    x0 = counter[0] + keys[0]
    x1 = counter[1] + keys[1]
    for group in range(5):
        for rotation in _ROTATIONS[group % 2]:
            x0 += x1
            left, right = _word(rotation), _word(32 - rotation)
            x1 = (tf.bitwise.left_shift(x1, left) | tf.bitwise.right_shift(x1, right)) ^ x0
        x0 += keys[(group + 1) % 3]
        x1 += keys[(group + 2) % 3] + _word(group + 1)
    return x0, x1


def row_bits(seed: int, stream: int, epoch: tf.Tensor, window_id: tf.Tensor, num: int) -> tf.Tensor:
    """Random bits for every row of a batch.

    The words are used in two steps, because (seed, epoch, window, stream, index) is longer than
    one key and one counter:

        row key = threefry(key=(seed, epoch), counter=window id)
        bits    = threefry(key=row key,       counter=(stream, index))

    Both steps are one-to-one in their counter: windows of an epoch have different row keys, and
    the numbers of a window come from different counters.

    Args:
      seed: any integer; taken modulo 2**32.
      stream: from 0 to 2**32 - 1; streams of one window are independent.
      epoch: int32 [B], how often the data set has been read before.
      window_id: int64 [B].
      num: how many numbers a row needs.

    Returns:
      uint32 [B, num].
    """
    key = (_word(seed & _LOW_32_BITS), tf.cast(epoch, tf.uint32))
    low = tf.cast(tf.bitwise.bitwise_and(window_id, _LOW_32_BITS), tf.uint32)
    high = tf.cast(
        tf.bitwise.bitwise_and(tf.bitwise.right_shift(window_id, 32), _LOW_32_BITS), tf.uint32
    )
    row_key = tuple(word[:, tf.newaxis] for word in threefry_2x32(key, (low, high)))
    index = tf.cast(tf.range((num + 1) // 2), tf.uint32)[tf.newaxis]
    words = threefry_2x32(row_key, (_word(stream), index))
    return tf.concat(words, axis=1)[:, :num]


def row_uniform(
    seed: int, stream: int, epoch: tf.Tensor, window_id: tf.Tensor, num: int
) -> tf.Tensor:
    """Uniform numbers in [0, 1) for every row of a batch; arguments as for `row_bits`.

    Returns:
      float32 [B, num], multiples of 2**-24 (the precision of float32 below 1).

    Example:
      >>> row_uniform(0, 0, tf.constant([3, 3]), tf.constant([41, 42], tf.int64), num=5).shape
      TensorShape([2, 5])
    """
    bits = tf.bitwise.right_shift(row_bits(seed, stream, epoch, window_id, num), _word(8))
    return tf.cast(tf.cast(bits, tf.int32), tf.float32) * 2.0**-24


def _word(value: int) -> tf.Tensor:
    return tf.constant(value, tf.uint32)
