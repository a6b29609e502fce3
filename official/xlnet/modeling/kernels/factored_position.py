"""Relative positions without a relative shift: the sinusoids of a distance as products.

By the addition theorems, with ω a frequency, i the position of a row and j the position of a key,

    sin(ω(i - j)) = sin(ωi) cos(ωj) - cos(ωi) sin(ωj)
    cos(ω(i - j)) = cos(ωi) cos(ωj) + sin(ωi) sin(ωj)

So the positional score (q + r_r)·W_r·sinusoids(i - j) is a product of D numbers of the row and D
numbers of the key. That is D / H times the arithmetic of scores per distance, in one large product
that gives scores per key: nothing is shifted. A TPU has arithmetic to spare, and a shift along its
lanes is the most expensive operation of the whole step (docs/performance.md). Known as factorized
relative attention (Dai et al., *Funnel-Transformer*, 2020, arXiv 2006.03236).

What it earns: by the compiler's estimates for a TPU v5e, a layer of base takes 10.4 million cycles
from factors, and 21.5 million with shifts.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import tensorflow as tf

from official.xlnet.modeling.kernels.product_type import multiply
from official.xlnet.modeling.kernels.stateless_dropout import dropout
from official.xlnet.modeling.ops.shapes import sizes


class FactoredSinusoids(NamedTuple):
    """Factors of the sinusoids of all distances between rows and keys.

    For a row i, a key j and a frequency c, the sine and the cosine of their distance are
    Σ_f rows[0, i, f, c] · keys[j, f, c] and Σ_f rows[1, i, f, c] · keys[j, f, c].

    Attributes:
      rows: [2, T, 2, D / 2].
      keys: [K, 2, D / 2].
    """

    rows: tf.Tensor
    keys: tf.Tensor

    @classmethod
    def of_positions(cls, rows: tuple, keys: tuple) -> FactoredSinusoids:
        """The factors, from sine and cosine of all positions.

        Args:
          rows: sines and cosines of the rows' positions, float32 [T, D / 2] each.
          keys: sines and cosines of the keys' positions, float32 [K, D / 2] each.
        """
        sine, cosine = rows
        of_sine, of_cosine = tf.stack([sine, -cosine], axis=1), tf.stack([cosine, sine], axis=1)
        return cls(tf.stack([of_sine, of_cosine]), tf.stack(keys[::-1], axis=1))

    def with_dropout(
        self, rate: float, sine_seed: tf.Tensor, cosine_seed: tf.Tensor
    ) -> FactoredSinusoids:
        """Drops sinusoids with probability `rate`, each row's for all its keys together.

        For one pair of row and key that is the dropout of `Sinusoids`, whose masks all pairs of one
        distance share; here all pairs of one row share them.
        """
        one = tf.ones_like(self.rows[0, :, :1])
        masks = [dropout(one, rate, seed) for seed in (sine_seed, cosine_seed)]
        return self._replace(rows=self.rows * tf.stack(masks))

    def of_distances(self) -> tuple[tf.Tensor, tf.Tensor]:
        """Sines and cosines of the distances M + T - 1 … -(T - 1), [R, D / 2] each.

        First the distances of the last row to all keys, then of the first row to the keys after it.
        """
        num_tokens, num_keys = sizes(self.rows)[1], sizes(self.keys)[0]
        later_keys = self.keys[num_keys - num_tokens + 1 :]
        sine, cosine = tf.unstack(
            tf.concat(
                [
                    tf.einsum("gfc,jfc->gjc", self.rows[:, -1], self.keys),
                    tf.einsum("gfc,jfc->gjc", self.rows[:, 0], later_keys),
                ],
                axis=1,
            )
        )
        return sine, cosine

    def of_rows(
        self, position_BX: tf.Tensor | None, is_reversed_B: tf.Tensor | None
    ) -> FactorsOfRows:
        """The factors for the rows of a stream.

        Args:
          position_BX: int32 [B, X], positions of the rows; None for 0 … T - 1.
          is_reversed_B: bool [B], windows whose distances are negated; None for none.
        """
        if position_BX is None:
            sine, cosine = (half[None, None] for half in tf.unstack(self.rows))
        else:
            sine, cosine = (tf.gather(half, position_BX)[:, None] for half in tf.unstack(self.rows))
        if is_reversed_B is not None:
            direction_B = 1 - 2 * tf.cast(is_reversed_B, sine.dtype)
            sine = sine * direction_B[:, None, None, None, None]
        return FactorsOfRows(sine, cosine, self.keys)


class FactorsOfRows(NamedTuple):
    """The factors of X rows, in each of B windows or the same in all, and of their keys.

    Attributes:
      sine: [B or 1, 1, X, 2, D / 2].
      cosine: [1 or B, 1, X, 2, D / 2].
      keys: [K, 2, D / 2].
    """

    sine: tf.Tensor
    cosine: tf.Tensor
    keys: tf.Tensor

    def scores(self, query_BNXH: tf.Tensor, kernel_DNH: tf.Tensor) -> tf.Tensor:
        """Positional scores of rows with keys, [B, N, X, K], in the dtype of `query_BNXH`.

        Args:
          query_BNXH: (q + r_r) / √H.
          kernel_DNH: projection of sinusoids, W_r: first of sines, then of cosines.
        """
        project = functools.partial(tf.einsum, "bnxh,cnh->bnxc")
        by_sine, by_cosine = (
            tf.cast(multiply(query_BNXH, half, project), tf.float32)[..., None, :]
            for half in tf.split(kernel_DNH, 2, axis=0)
        )
        by_key_BNXFC = tf.cast(by_sine * self.sine + by_cosine * self.cosine, query_BNXH.dtype)
        # F and C are not merged: on a TPU that would cost as much as the shift that is avoided.
        score = functools.partial(tf.einsum, "bnxfc,kfc->bnxk")
        return multiply(by_key_BNXFC, self.keys, score)
