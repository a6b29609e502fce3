"""Tokenization with character offsets as TensorFlow operations.

Offsets are composed of two alignments:

* cleaned to original characters: cleaning is tracked code point by code point;
* tokens to cleaned characters: the pieces of a text, without `▁`, are its normalized characters
  in order, so their lengths determine where each starts. Where normalization changes the number
  of characters, which is rare, offsets come from the slower SentencePiece operation of
  tensorflow-text, which tracks them.

The result equals `Tokenizer.encode_with_offsets`.
"""

from __future__ import annotations

import itertools
import sys

import numpy as np
import tensorflow as tf
import tensorflow_text

from official.xlnet.errors import require_data
from official.xlnet.files.schema import shown
from official.xlnet.tokenization.graph.characters import PagedTable, character_blocks, whitespace
from official.xlnet.tokenization.graph.tokenizer import GraphTokenizer
from official.xlnet.tokenization.special_tokens import UNK_ID, WORD_START
from official.xlnet.tokenization.tokenizer import Tokenizer

_SPACE = ord(" ")
_ROW = 1 << 32  # Key stride between rows, to search all rows at once.


class OffsetTokenizer(tf.Module):
    """Tokenizer with character offsets, as TensorFlow operations.

    Args:
      tokenizer: the Python tokenizer.
      graph_tokenizer: the same tokenizer as TensorFlow operations.
    """

    def __init__(self, tokenizer: Tokenizer, graph_tokenizer: GraphTokenizer):
        super().__init__(name="offset_tokenizer")
        tokens = list(tokenizer.added_tokens.values())
        require_data(
            not tokens,
            "places of tokens in a graph",
            "a vocabulary without added tokens",
            f"{shown(tokens)}; `xlnet predict` reads them",
        )
        has_spaces = tokenizer.piece_to_id(WORD_START) != UNK_ID or all(tokenizer.num_characters)
        got = "bytes in place of the space before a word; `xlnet predict` reads them"
        require_data(has_spaces, "places of tokens in a graph", "a vocabulary with spaces", got)
        self._graph = graph_tokenizer
        self._tracking = tensorflow_text.SentencepieceTokenizer(
            graph_tokenizer.sentencepiece.model_proto, out_type=tf.int32
        )
        pieces = [tokenizer.id_to_piece(i) for i in range(tokenizer.vocab_size)]
        spaces = [piece.count(WORD_START) for piece in pieces]
        # Of the bytes of a character, the first one is visible; the others have its place.
        self._visible = tf.constant(tokenizer.num_characters - spaces, tf.int32)
        self._follows = tf.constant(tokenizer.num_characters == 0)
        is_space = np.zeros(sys.maxunicode + 1, np.int32)
        self._keeps_whitespace = tokenizer.keep_whitespace
        is_space[[*map(ord, whitespace())]] = not tokenizer.keep_whitespace
        self._is_space = PagedTable(is_space)
        blanks = tokenizer.blank_characters("".join(itertools.chain(*character_blocks()[1])))
        is_blank = np.zeros(sys.maxunicode + 1, np.int32)
        is_blank[[*map(ord, blanks)]] = 1
        self._is_blank = PagedTable(is_blank)

    def __call__(self, text: tf.Tensor) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]:
        """Tokenizes texts.

        Args:
          text: string [B].

        Returns:
          Token ids, and the start and end of each token in code points of its text, end
          exclusive; each a ragged int32 [B, (number of tokens)].
        """
        cleaned = self._graph.clean(text)
        ids, merged = self._graph.sentencepiece.with_lengths(cleaned)
        unknown = tf.boolean_mask(merged.values, ids.values == UNK_ID)
        # An unknown token is as long as the merged text, any other as its piece.
        ids, source = self._graph.split.with_source(ids)
        values = ids.values
        length = tf.where(
            values == UNK_ID, tf.gather(merged.values, source), tf.gather(self._visible, values)
        )
        row = tf.cast(ids.value_rowids(), tf.int64)
        follows = tf.cast(tf.gather(self._follows, values), tf.int32)
        start, length = _place(ids, length) - follows, length + follows
        source_start, source_end, text_end = self._sources(text)
        first, last = self._in_cleaned(cleaned, row, start, length, unknown)

        # Flat indices of cleaned characters over all rows.
        splits = tf.cast(source_start.row_splits, tf.int64)
        base, size = tf.gather(splits, row), tf.gather(source_start.row_lengths(), row)
        starts = tf.concat([source_start.values, [0]], axis=0)
        ends = tf.concat([source_end.values, [0]], axis=0)
        # White space at the end, where it is kept, has no character after it.
        num_visible = tf.gather(tf.math.segment_sum(length, row), row)
        start_of = tf.where(
            (first < size) & (start < num_visible),
            tf.gather(starts, base + tf.minimum(first, size)),
            tf.gather(text_end, row),
        )
        last = tf.clip_by_value(last, 0, tf.maximum(size - 1, 0))
        end_of = tf.where(length > 0, tf.gather(ends, base + last), start_of)
        return ids, ids.with_values(start_of), ids.with_values(end_of)

    def _sources(self, text):
        """Returns start and end of the source of each cleaned character, and text lengths."""
        points = tf.strings.unicode_decode(text, "UTF-8", errors="replace")
        text_end = tf.cast(points.row_lengths(), tf.int32)
        row = tf.cast(points.value_rowids(), tf.int32)
        position = _place(points, tf.ones_like(points.values))
        is_space = self._is_space(points.values) == 1
        after_space = tf.concat([[True], is_space[:-1] | (row[1:] != row[:-1])], 0)
        after_space = after_space[: tf.size(row)]
        last_visible = tf.math.unsorted_segment_max(
            tf.where(is_space, -1, position), row, tf.cast(points.nrows(), tf.int32)
        )
        keep = ~is_space | (~after_space & (position < tf.gather(last_visible, row)))
        if not self._keeps_whitespace:
            keep &= ~self._is_second_quote(points.values, row)
        points = points.with_values(tf.where(is_space, _SPACE, points.values))
        kept = tf.ragged.boolean_mask(points, points.with_values(keep))
        kept_position = tf.boolean_mask(position, keep)
        cleaned, source = self._graph.fold.with_source(kept)
        start = tf.gather(kept_position, source)
        # A character ends where the next kept one starts, so combining marks belong to it.
        same_row = cleaned.value_rowids()[1:] == cleaned.value_rowids()[:-1]
        is_other = tf.concat([(start[1:] != start[:-1]) | ~same_row, [True]], 0)[: tf.size(start)]
        text_stop = tf.gather(last_visible + 1, cleaned.value_rowids())
        following = tf.concat([tf.where(same_row, start[1:], text_stop[:-1]), text_stop[-1:]], 0)
        # Characters with the same source share the end of the last of them.
        group = tf.cumsum(tf.cast(is_other, tf.int32), exclusive=True)
        end = tf.gather(tf.boolean_mask(following, is_other), group)
        return cleaned.with_values(start), cleaned.with_values(end), text_end

    @staticmethod
    def _is_second_quote(values, row):
        """Returns whether a character is the second of `` or '', which are merged into one."""
        is_quote = (values == ord("`")) | (values == ord("'"))
        same = (values[1:] == values[:-1]) & (row[1:] == row[:-1])
        begins = tf.concat([[True], ~same], 0)[: tf.size(values)]
        index = tf.range(tf.size(values))
        run = tf.cumsum(tf.cast(begins, tf.int32)) - 1
        run_start = tf.gather(tf.boolean_mask(index, begins), run)
        return is_quote & ((index - run_start) % 2 == 1)

    def _in_cleaned(self, cleaned, row, start, length, unknown):
        """Maps tokens, given as normalized characters, to first and last cleaned characters.

        Both tokenizers have the same unknown tokens, of `unknown` normalized characters each.
        """
        piece_ids, begin, end = self._tracking.tokenize_with_offsets(cleaned)
        points, bytes_of = tf.strings.unicode_decode_with_offsets(cleaned, "UTF-8")
        piece_row = piece_ids.value_rowids()
        point_key = points.value_rowids() * _ROW + bytes_of.values
        base = tf.gather(points.row_starts(), piece_row)

        def character(offset):
            key = piece_row * _ROW + tf.cast(offset.values, tf.int64)
            return tf.searchsorted(point_key, key, out_type=tf.int64) - base

        begin, end = character(begin), character(end)
        is_unknown = piece_ids.values == UNK_ID
        unknown_index = tf.cumsum(tf.cast(is_unknown, tf.int32), exclusive=True)
        piece_length = tf.where(
            is_unknown,
            tf.gather(tf.concat([unknown, [0]], 0), tf.minimum(unknown_index, tf.size(unknown))),
            tf.gather(self._visible, piece_ids.values),
        )
        # A piece begins at its first character that normalization does not remove or make a space,
        # which may end with another piece (`ﬁ`).
        visible = tf.where(self._is_blank(points.values) == 0)[:, 0]
        following = tf.searchsorted(visible, base + begin, out_type=tf.int64)
        first_visible = tf.gather(tf.concat([visible, [_ROW]], 0), following) - base
        begin = tf.where(piece_length > 0, first_visible, begin)
        end = tf.maximum(end, begin + 1)
        piece_start = _place(piece_ids, piece_length)
        piece_key = piece_row * _ROW + tf.cast(piece_start, tf.int64)

        def at(place):
            key = row * _ROW + tf.cast(place, tf.int64)
            piece = tf.maximum(tf.searchsorted(piece_key, key, "right", tf.int64) - 1, 0)
            inside = place - tf.gather(piece_start, piece)
            return piece, tf.gather(begin, piece) + tf.cast(inside, tf.int64)

        _, first = at(start)
        piece, last = at(start + length - 1)
        ends_piece = start + length == tf.gather(piece_start + piece_length, piece)
        last = tf.where(ends_piece, tf.gather(end, piece) - 1, last)
        return first, tf.maximum(last, first)


def _place(ragged, length):
    """Exclusive cumulative sum of lengths within each row."""
    before = tf.cumsum(length, exclusive=True)
    row = ragged.value_rowids()
    total = tf.concat([[0], tf.cumsum(length)], axis=0)
    return before - tf.gather(tf.gather(total, ragged.row_starts()), row)
