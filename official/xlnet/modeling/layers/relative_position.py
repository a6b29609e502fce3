"""Relative positions: sinusoids of distances, and scores per distance turned into scores per key.

Query row at position i and key column j (memory first, so the key's position is j - M) are
M + i - j apart. The distances of a window run from M + T - 1 (first key, last row) down to
-(T - 1); the table of R = M + 2T - 1 sinusoids is ordered that way, so that

    table row of (i, j) = T - 1 - i + j

Reading right to left negates every distance. sin is odd and cos is even, so the two halves of
the table are projected once, and a reversed row adds the cosine half and subtracts the sine half.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import tensorflow as tf

# Rows that share one slice of the position table. A block of c rows computes K + c - 1
# distances for K keys each; smaller blocks waste less and make more, smaller products.
BLOCK_SIZE = 256


def sinusoids(
    num_tokens: int, num_memory: int, width: int, clamp_len: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Sine and cosine of every distance at every frequency, float32 [R, D / 2] each.

    Element c of distance d is sin(d / 10000^(2c/D)), and cos of the same.

    Args:
      num_tokens: T.
      num_memory: M.
      width: D, even.
      clamp_len: distances are clamped to ±clamp_len; 0 leaves them alone.

    Example:
      >>> sine, cosine = sinusoids(num_tokens=2, num_memory=1, width=2)
      >>> sine[:, 0]  # distances 2, 1, 0, -1
      array([ 0.9092974,  0.841471 ,  0.       , -0.841471 ], dtype=float32)
    """
    distance_R = np.arange(num_memory + num_tokens - 1, -num_tokens, -1, dtype=np.float64)
    if clamp_len:
        distance_R = np.clip(distance_R, -clamp_len, clamp_len)
    frequency_C = 10000.0 ** (-np.arange(0, width, 2) / width)
    angle_RC = np.outer(distance_R, frequency_C)
    return np.sin(angle_RC).astype(np.float32), np.cos(angle_RC).astype(np.float32)


@dataclasses.dataclass(frozen=True)
class ConsecutiveRows:
    """Query rows at positions 0 … T - 1: the content stream.

    Rows are taken in blocks of c, and every block sees only the W = K + c - 1 rows of the table
    that it needs.

    Attributes:
      num_tokens: T.
      num_keys: K.
    """

    num_tokens: int
    num_keys: int

    @property
    def num_blocks(self) -> int:
        """Number of blocks."""
        return -(-self.num_tokens // BLOCK_SIZE)

    @property
    def block(self) -> int:
        """Rows c of a block."""
        return -(-self.num_tokens // self.num_blocks)

    @property
    def padding(self) -> int:
        """Rows that are added to fill the last block."""
        return self.num_blocks * self.block - self.num_tokens

    def scores(self, query_BNTH: tf.Tensor, position_BNRH: tf.Tensor) -> tf.Tensor:
        """Scores of every row with the distances of its block, [B, N, blocks, c, W]."""
        heads, _, width = position_BNRH.shape[1:]
        query_BNTH = tf.pad(query_BNTH, [[0, 0], [0, 0], [0, self.padding], [0, 0]])
        query_BNbcH = tf.reshape(query_BNTH, [-1, heads, self.num_blocks, self.block, width])
        position_BNRH = tf.pad(position_BNRH, [[0, 0], [0, 0], [self.padding, 0], [0, 0]])
        starts = [self.block * b for b in reversed(range(self.num_blocks))]
        window = self.num_keys + self.block - 1
        size = [-1, heads, window, width]
        windows = [tf.slice(position_BNRH, [0, 0, start, 0], size) for start in starts]
        position_BNbWH = tf.stack(windows, axis=2)
        return tf.matmul(query_BNbcH, position_BNbWH, transpose_b=True)

    def to_keys(self, score_BNbcW: tf.Tensor, position_BT: tf.Tensor) -> tf.Tensor:
        """The relative shift: scores per distance → scores per key, [B, N, T, K].

        Row i of a block holds its K scores from element c - 1 - i on. Seen as one flat buffer,
        that is a matrix whose rows are one element shorter, from element c - 1 on.
        """
        del position_BT  # Known: 0 … T - 1.
        if self.num_tokens == 1:
            return score_BNbcW[:, :, 0]
        heads, blocks, c, w = score_BNbcW.shape[1:]
        flat = tf.reshape(score_BNbcW, [-1, heads, blocks, c * w])
        flat = flat[..., c - 1 : c - 1 + c * (w - 1)]
        shifted = tf.reshape(flat, [-1, heads, blocks, c, w - 1])[..., : self.num_keys]
        shifted = tf.reshape(shifted, [-1, heads, blocks * c, self.num_keys])
        return shifted[:, :, : self.num_tokens]

    def from_keys(self, score_BNTK: tf.Tensor, position_BT: tf.Tensor) -> tf.Tensor:
        """The transpose of `to_keys`: [B, N, T, K] → [B, N, blocks, c, W], 0 where no key is."""
        del position_BT
        if self.num_tokens == 1:
            return score_BNTK[:, :, None]
        heads, blocks, c = score_BNTK.shape[1], self.num_blocks, self.block
        w = self.num_keys + c - 1
        if self.padding:  # TensorFlow would copy it all to add nothing.
            score_BNTK = tf.pad(score_BNTK, [[0, 0], [0, 0], [0, self.padding], [0, 0]])
        score = tf.reshape(score_BNTK, [-1, heads, blocks, c, self.num_keys])
        score = tf.pad(score, [[0, 0]] * 4 + [[0, w - 1 - self.num_keys]])
        flat = tf.reshape(score, [-1, heads, blocks, c * (w - 1)])
        flat = tf.pad(flat, [[0, 0]] * 3 + [[c - 1, 1]])
        return tf.reshape(flat, [-1, heads, blocks, c, w])


@dataclasses.dataclass(frozen=True)
class TargetRows:
    """Query rows at any positions: the query stream, which lives at the targets only.

    Attributes:
      num_tokens: T.
      num_keys: K.
    """

    num_tokens: int
    num_keys: int

    def scores(self, query_BNPH: tf.Tensor, position_BNRH: tf.Tensor) -> tf.Tensor:
        """Scores of every row with every distance, [B, N, P, R]."""
        return tf.matmul(query_BNPH, position_BNRH, transpose_b=True)

    def to_keys(self, score_BNPR: tf.Tensor, position_BP: tf.Tensor) -> tf.Tensor:
        """Scores per distance → scores per key, [B, N, P, K], for rows at `position_BP`."""
        first_BP = self.num_tokens - 1 - position_BP
        return _roll(score_BNPR, -first_BP)[..., : self.num_keys]

    def from_keys(self, score_BNPK: tf.Tensor, position_BP: tf.Tensor) -> tf.Tensor:
        """The transpose of `to_keys`: [B, N, P, K] → [B, N, P, R], 0 where no key is."""
        margin = self.num_tokens - 1
        padded_BNPR = tf.pad(score_BNPK, [[0, 0]] * 3 + [[0, margin]])
        return _roll(padded_BNPR, margin - position_BP)


def _roll(x_BNPR: tf.Tensor, shift_BP: tf.Tensor) -> tf.Tensor:
    """tf.roll(x[b, :, p], shift[b, p], axis=-1) of every b and p.

    Moving whole rows takes half the time of a gather of elements. (A slice would do, but
    XLA compiles again for every new begin of one.)
    """
    _, heads, num_rows, length = x_BNPR.shape
    x_XNR = tf.reshape(tf.transpose(x_BNPR, [0, 2, 1, 3]), [-1, heads, length])
    rolled_XNR = tf.map_fn(
        lambda row: tf.roll(row[0], row[1], axis=-1),
        (x_XNR, tf.reshape(shift_BP, [-1])),
        fn_output_signature=x_BNPR.dtype,
    )
    rolled_BPNR = tf.reshape(rolled_XNR, [-1, num_rows, heads, length])
    return tf.transpose(rolled_BPNR, [0, 2, 1, 3])
