"""Classes of Unicode characters, as Python has them, and tables of integers by code point."""

from __future__ import annotations

import functools
import sys
import unicodedata

import numpy as np
import tensorflow as tf

_BLOCK = 256  # Characters of a block, and entries of a page.
_PLAIN = {"Cn", "Co", "Lo"}  # Unassigned, for private use, and letters without case.
_HANGUL_LETTERS = 0x1100  # First of a block of letters that compose to syllables.


@functools.cache
def character_blocks() -> tuple[list[str], list[str]]:
    """All characters that UTF-8 can encode except NUL, in blocks: plain ones, and all others.

    Plain characters have no case and no other form, and neither end nor continue a word: text
    cleaning leaves them as they are, and no normalizer composes them with what follows.
    """
    plain, others = [], []
    for first in range(0, sys.maxunicode + 1, _BLOCK):
        block = "".join(map(chr, range(max(first, 1), first + _BLOCK)))
        categories = set(map(unicodedata.category, block))
        is_plain = categories <= _PLAIN and unicodedata.is_normalized("NFKD", block)
        if is_plain and first != _HANGUL_LETTERS:
            plain.append(block)
        elif categories != {"Cs"}:
            others.append(block)
    return plain, others


@functools.cache
def whitespace() -> str:
    """All whitespace characters."""
    return "".join(c for block in character_blocks()[1] for c in block if c.isspace())


class PagedTable(tf.Module):
    """Lookup table from integers to integers, stored as deduplicated pages of 256 entries."""

    def __init__(self, table: np.ndarray):
        """Creates the lookup table.

        Args:
          table: int32 [number of keys], the value of each key.
        """
        super().__init__()
        dense = np.pad(table, (0, -len(table) % _BLOCK)).reshape(-1, _BLOCK)
        pages: dict[bytes, int] = {}
        page_of = [pages.setdefault(page.tobytes(), len(pages)) for page in dense]
        self._pages = tf.reshape(tf.io.decode_raw(b"".join(pages), table.dtype), [-1, _BLOCK])
        self._page_of = tf.constant(page_of, tf.int32)

    def __call__(self, key: tf.Tensor) -> tf.Tensor:
        page = tf.gather(self._page_of, key // _BLOCK)
        return tf.gather_nd(self._pages, tf.stack([page, key % _BLOCK], axis=-1))
