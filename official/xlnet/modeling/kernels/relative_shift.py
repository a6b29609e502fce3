"""The relative shift: from scores per distance to scores per key, and back.

Scores of a query row with the R distances of `relative_position` become scores with its K keys:
key j of the row at position i is at distance number T - 1 - i + j. How that is computed depends
on where the rows are: at all positions one after the other (the content stream), or at any (the
query stream, which lives at the targets only).
"""

from __future__ import annotations

import dataclasses

import tensorflow as tf

from official.xlnet.modeling.kernels.device_forms import device, has_accelerator
from official.xlnet.modeling.kernels.matrix_products import distance_scores
from official.xlnet.modeling.ops.shapes import sizes

# Rows that share one slice of the position table. A block of c rows computes K + c - 1
# distances for K keys each; smaller blocks waste less and make more, smaller products. On a TPU
# they are as wide as its matrix unit; larger ones take its compiler many times as long.
BLOCK_SIZE, ACCELERATOR_BLOCK_SIZE = 256, 128


def block_size() -> int:
    """The most rows of a block."""
    return ACCELERATOR_BLOCK_SIZE if has_accelerator() else BLOCK_SIZE


@dataclasses.dataclass(frozen=True)
class ConsecutiveRows:
    """Query rows at the last positions of a window: the content stream, at all of T or fewer.

    Rows are taken in blocks of c, and every block reads only the W = K + c - 1 rows of the table
    that it needs. By the compiler's estimates for a TPU v5e, blocks of 128, 256 and 512 rows take
    3.3, 3.2 and 4.3 million cycles for base with 8 rows, and 8, 22 and 62 seconds to compile.

    Attributes:
      num_tokens: number of rows, T.
      num_keys: number of keys, K.
    """

    num_tokens: int
    num_keys: int

    @property
    def num_blocks(self) -> int:
        """Number of blocks."""
        return -(-self.num_tokens // block_size())

    @property
    def block(self) -> int:
        """Number of rows of a block, c."""
        return -(-self.num_tokens // self.num_blocks)

    @property
    def padding(self) -> int:
        """Number of rows that are added to fill the last block."""
        return self.num_blocks * self.block - self.num_tokens

    def scores(self, query_BNTH: tf.Tensor, position_BNRH: tf.Tensor) -> tf.Tensor:
        """Scores of every row with the distances of its block, [B, N, blocks, c, W]."""
        heads, _, width = sizes(position_BNRH)[1:]
        query_BNTH = tf.pad(query_BNTH, [[0, 0], [0, 0], [0, self.padding], [0, 0]])
        query_BNbcH = tf.reshape(query_BNTH, [-1, heads, self.num_blocks, self.block, width])
        num_distances = self.num_keys + self.num_tokens - 1
        if num_distances != position_BNRH.shape[2]:  # A table for more rows.
            position_BNRH = position_BNRH[:, :, :num_distances]
        position_BNRH = tf.pad(position_BNRH, [[0, 0], [0, 0], [self.padding, 0], [0, 0]])
        starts = [self.block * b for b in reversed(range(self.num_blocks))]
        window = self.num_keys + self.block - 1
        size = [-1, heads, window, width]
        windows = [tf.slice(position_BNRH, [0, 0, start, 0], size) for start in starts]
        position_BNbWH = tf.stack(windows, axis=2)
        return distance_scores(query_BNbcH, position_BNbWH)

    def to_keys(self, score_BNbcW: tf.Tensor, _: tf.Tensor) -> tf.Tensor:
        """The relative shift: scores per distance → scores per key, [B, N, T, K].

        The positions of the rows are known: the last ones, 0 … T - 1.

        Row i of a block holds its K scores from element c - 1 - i on. Seen as one flat buffer,
        that is a matrix whose rows are one element shorter, from element c - 1 on.
        """
        if self.num_tokens == 1:
            return score_BNbcW[:, :, 0]
        heads, blocks, c, w = sizes(score_BNbcW)[1:]
        flat = tf.reshape(score_BNbcW, [-1, heads, blocks, c * w])
        flat = flat[..., c - 1 : c - 1 + c * (w - 1)]
        shifted = tf.reshape(flat, [-1, heads, blocks, c, w - 1])[..., : self.num_keys]
        shifted = tf.reshape(shifted, [-1, heads, blocks * c, self.num_keys])
        return shifted[:, :, : self.num_tokens]

    def from_keys(self, score_BNTK: tf.Tensor, _: tf.Tensor) -> tf.Tensor:
        """The transpose of `to_keys`: [B, N, T, K] → [B, N, blocks, c, W], 0 where no key is."""
        if self.num_tokens == 1:
            return score_BNTK[:, :, None]
        heads, blocks, c = score_BNTK.shape[1], self.num_blocks, self.block
        w = self.num_keys + c - 1
        if self.padding:  # Padding by nothing would copy it all.
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
      num_tokens: number of positions, T.
      num_keys: number of keys, K.
    """

    num_tokens: int
    num_keys: int

    def scores(self, query_BNPH: tf.Tensor, position_BNRH: tf.Tensor) -> tf.Tensor:
        """Scores of every row with every distance, [B, N, P, R]."""
        return distance_scores(query_BNPH, position_BNRH)

    def to_keys(self, score_BNPR: tf.Tensor, position_BP: tf.Tensor) -> tf.Tensor:
        """Scores per distance → scores per key, [B, N, P, K], for rows at `position_BP`."""
        first_BP = self.num_tokens - 1 - position_BP
        if device() == "GPU":
            return _gathered(score_BNPR, first_BP, self.num_keys)
        if device() == "TPU":
            return _cut(score_BNPR, first_BP, self.num_tokens, self.num_keys)
        return _roll(score_BNPR, -first_BP)[..., : self.num_keys]

    def from_keys(self, score_BNPK: tf.Tensor, position_BP: tf.Tensor) -> tf.Tensor:
        """The transpose of `to_keys`: [B, N, P, K] → [B, N, P, R], 0 where no key is."""
        margin = self.num_tokens - 1
        if device() == "GPU":
            return _gathered(score_BNPK, position_BP - margin, self.num_keys + margin)
        if device() == "TPU":
            return _place(score_BNPK, margin - position_BP, self.num_tokens)
        padded_BNPR = tf.pad(score_BNPK, [[0, 0]] * 3 + [[0, margin]])
        return _roll(padded_BNPR, margin - position_BP)


# How positional scores become scores per key.
Distances = ConsecutiveRows | TargetRows


def _roll(x_BNPR: tf.Tensor, shift_BP: tf.Tensor) -> tf.Tensor:
    """tf.roll(x[b, :, p], shift[b, p], axis=-1) of every b and p.

    With a gather of elements, a step of `tiny` takes 2 to 3% more of a CPU's time, and one of base
    no more ("rolled rows" of `benchmarks.training.forms`). A slice would do, but XLA compiles again
    for every new begin.
    """
    _, heads, num_rows, length = sizes(x_BNPR)
    x_XNR = tf.reshape(tf.transpose(x_BNPR, [0, 2, 1, 3]), [-1, heads, length])
    rolled_XNR = tf.map_fn(
        lambda row: tf.roll(row[0], row[1], axis=-1),
        (x_XNR, tf.reshape(shift_BP, [-1])),
        fn_output_signature=x_BNPR.dtype,
    )
    rolled_BPNR = tf.reshape(rolled_XNR, [-1, num_rows, heads, length])
    return tf.transpose(rolled_BPNR, [0, 2, 1, 3])


def _gathered(x_BNPR: tf.Tensor, first_BP: tf.Tensor, length: int) -> tf.Tensor:
    """x[b, :, p, first[b, p] :][: length] of every b and p, 0 outside of x: one kernel of a GPU.

    By its compiler, base of two layers with 8 rows moves 0.3 GB less than with `_cut` and `_place`.
    """
    batch, heads, num_rows, width = sizes(x_BNPR)
    index_B1PL = first_BP[:, None, :, None] + tf.range(length)
    inside_B1PL = (index_B1PL >= 0) & (index_B1PL < width)
    # x may have more elements than int32 counts.
    row_X = tf.range(tf.cast(batch * heads * num_rows, tf.int64))
    row_BNP1 = tf.reshape(row_X, [-1, heads, num_rows, 1])
    column_B1PL = tf.cast(tf.clip_by_value(index_B1PL, 0, width - 1), tf.int64)
    flat_BNPL = row_BNP1 * width + column_B1PL
    found_BNPL = tf.gather(tf.reshape(x_BNPR, [-1]), flat_BNPL)
    return tf.where(inside_B1PL, found_BNPL, tf.zeros([], x_BNPR.dtype))


def _cut(x_BNPR: tf.Tensor, first_BP: tf.Tensor, num_tokens: int, num_keys: int) -> tf.Tensor:
    """x[b, :, p, first[b, p] :][: num_keys] of every b and p, without a loop over them.

    A barrel shifter: for each binary digit of `first`, from the highest on, rows where it is 1
    are moved to the left by as much as it stands for. Elements that no later step can reach are
    left out. By the compiler's estimates for a TPU v5e, 680 rows take 1.4 million cycles instead of
    the 4.6 million of a loop over them.

    Args:
      x_BNPR: R = K + T - 1.
      first_BP: int32, from 0 to T - 1.
      num_tokens: T.
      num_keys: K.
    """
    for digit in reversed(range((num_tokens - 1).bit_length())):
        step = 2**digit
        length = num_keys + step - 1
        missing = max(0, length + step - x_BNPR.shape[-1])  # In the first round only.
        x_BNPR = tf.pad(x_BNPR, [[0, 0]] * 3 + [[0, missing]])
        moved, kept = x_BNPR[..., step : step + length], x_BNPR[..., :length]
        x_BNPR = tf.where(_digit(first_BP, digit), moved, kept)
    return x_BNPR


def _place(x_BNPK: tf.Tensor, first_BP: tf.Tensor, num_tokens: int) -> tf.Tensor:
    """The transpose of `_cut`: [B, N, P, K + T - 1], x[b, n, p] from first[b, p] on, else 0."""
    length = x_BNPK.shape[-1] + num_tokens - 1
    for digit in range((num_tokens - 1).bit_length()):
        step = 2**digit
        moved = tf.pad(x_BNPK, [[0, 0]] * 3 + [[step, 0]])
        kept = tf.pad(x_BNPK, [[0, 0]] * 3 + [[0, step]])
        x_BNPK = tf.where(_digit(first_BP, digit), moved, kept)
    return x_BNPK[..., :length]


def _digit(number_BP: tf.Tensor, digit: int) -> tf.Tensor:
    """Whether a binary digit is 1, bool [B, 1, P, 1]."""
    return (tf.bitwise.right_shift(number_BP, digit) % 2 == 1)[:, None, :, None]
