"""SentencePiece as TensorFlow operations, with the same output as the Python library.

tensorflow-text has two SentencePiece operations, and neither matches the library exactly.
`SentencepieceTokenizer` wraps an older release that accumulates scores in a different precision:
if two segmentations tie (`000` as `0 00` or `00 0`), it may choose the other one, which happens in
about one in a hundred lines of real text. `FastSentencepieceTokenizer` accumulates scores like the
library, in float32 from left to right, but scores an unknown character once per byte and does not
support user-defined symbols. It is therefore given an extended vocabulary without unknowns:

* every character that is not in the vocabulary is added as a piece, with the library's score for
  unknown characters; its id is mapped to `<unk>` afterwards, and consecutive `<unk>` are merged;
* blocks of unassigned and of caseless Unicode characters (about a million) share one replacement
  character;
* user-defined symbols get the score that the library uses for them;
* line breaks and tabs, which it takes for spaces, are other characters where the vocabulary keeps
  white space.

Vocabularies of other types (BPE, characters, words) have no such ties: `SentencepieceTokenizer`
gives the ids of the library.

Ties may still be broken differently below a total score of -100,000, that is after some four
thousand unknown characters or ten thousand pieces of one text, where the library rescales its sums
to keep precision.
"""

from __future__ import annotations

import numpy as np
import sentencepiece
import tensorflow as tf
import tensorflow_text

from official.xlnet.errors import DataError
from official.xlnet.tokenization.graph.characters import character_blocks
from official.xlnet.tokenization.sentencepiece_proto import (
    KEEPS_WHITESPACE,
    NORMAL,
    UNIGRAM,
    UNKNOWN_PENALTY,
    USER_DEFINED,
    USER_DEFINED_SCORE,
    obstacle_to_export,
    parse_model,
)
from official.xlnet.tokenization.special_tokens import UNK_ID

_SPACES = "\t\n\v\f\r"  # Read as a space by `FastSentencepieceTokenizer`.


class GraphSentencePiece(tf.Module):
    """SentencePiece tokenizer for normalized text, as TensorFlow operations.

    Attributes:
      replaced: int32 [number of code points], code points that the caller has to replace by
        `stand_in` before tokenization.
      stand_in: replacement code point for `replaced`.
      whitespace: {code point of white space that is kept: its stand-in for the operations}.
      model_proto: the vocabulary with these code points.
    """

    def __init__(self, model_proto: bytes):
        """Creates the tokenizer from a serialized SentencePiece model.

        Args:
          model_proto: the contents of a `spiece.model` file.

        Raises:
          DataError: the model is not supported: a unigram model has to have a normalizer, to
            add a space before the first word, and to have no byte pieces.
        """
        super().__init__(name="sentencepiece")
        if obstacle := obstacle_to_export(model_proto):
            raise DataError(f"vocabulary in a graph: {obstacle}")
        model = parse_model(model_proto)
        self._is_unigram = model.trainer_spec.model_type == UNIGRAM
        self._vocab_size = len(model.pieces)
        self.whitespace: dict[int, str] = {}
        self.model_proto = model.SerializeToString()
        self.stand_in, self.replaced = 0, np.array([], np.int32)
        if not self._is_unigram:
            self._tokenizer = tensorflow_text.SentencepieceTokenizer(
                self.model_proto, out_type=tf.int32
            )
            return
        pieces = {p.piece for p in model.pieces if p.type in (NORMAL, USER_DEFINED)}
        own_piece, alike = _unknown_characters(pieces, model_proto)
        self.stand_in = ord(alike[0])
        self.replaced = np.array([0, *map(ord, alike[1:])], np.int32)  # NUL cannot be a piece.

        lowest = min(np.float32(p.score) for p in model.pieces if p.type == NORMAL)
        for piece in model.pieces:
            if piece.type == USER_DEFINED:
                piece.score = USER_DEFINED_SCORE * (len(piece.piece.encode()) - 1)
        if model.normalizer_spec.name == KEEPS_WHITESPACE:
            self.whitespace = dict(zip(map(ord, _SPACES), alike[1:], strict=False))
            for piece in model.pieces:
                piece.piece = piece.piece.translate(self.whitespace)
            own_piece = [character.translate(self.whitespace) for character in own_piece]
            self.model_proto = model.SerializeToString()
        for character in own_piece + alike[:1]:
            model.pieces.add(piece=character, score=lowest - np.float32(UNKNOWN_PENALTY))
        self._tokenizer = tensorflow_text.FastSentencepieceTokenizer(model.SerializeToString())

    def __call__(self, text: tf.Tensor) -> tf.RaggedTensor:
        """Tokenizes a batch of texts.

        Args:
          text: string [B], UTF-8, without the code points in `replaced`.

        Returns:
          Token ids, int32 [B, (number of tokens)].
        """
        return self.with_lengths(text)[0]

    def with_lengths(self, text: tf.Tensor) -> tuple[tf.RaggedTensor, tf.RaggedTensor]:
        """Tokenizes texts and returns how many original tokens each id stands for.

        Args:
          text: see `__call__`.

        Returns:
          ids: int32 [B, (number of tokens)].
          lengths: int32, same shape, 1 except where consecutive `<unk>` were merged; of other
            vocabularies than unigram ones, the number of visible characters of each token.
        """
        if not self._is_unigram:
            ids, starts, ends = self._tokenizer.tokenize_with_offsets(text)
            token = tf.strings.substr(
                tf.gather(text, ids.value_rowids()), starts.values, (ends - starts).values
            )
            return ids, ids.with_values(tf.strings.length(tf.strings.strip(token), "UTF8_CHAR"))
        ids = self._tokenizer.tokenize(text).with_row_splits_dtype(tf.int64)
        values = tf.where(ids.values < self._vocab_size, ids.values, UNK_ID)
        row = ids.value_rowids()
        both_unknown = (values[1:] == UNK_ID) & (values[:-1] == UNK_ID) & (row[1:] == row[:-1])
        keep = tf.concat([[True], ~both_unknown], 0)[: tf.size(values)]
        kept = tf.ragged.boolean_mask(ids.with_values(values), ids.with_values(keep))
        group = tf.cumsum(tf.cast(keep, tf.int32)) - 1
        return kept, kept.with_values(tf.math.bincount(group, dtype=tf.int32))


def _unknown_characters(pieces: set[str], model_proto: bytes) -> tuple[list[str], list[str]]:
    """Characters that are not in the vocabulary, split into distinct and interchangeable ones.

    The interchangeable ones are of blocks of plain characters that occur in no piece and that the
    normalizer does not change. Those that it makes of other characters (`一` of `⼀`) are in both:
    the caller replaces characters before normalization.
    """
    processor = sentencepiece.SentencePieceProcessor(model_proto=model_proto)
    in_pieces = set("".join(pieces))
    plain, blocks = character_blocks()
    others = "".join(blocks)
    distinct = {*others, *processor.normalize(" ".join(others))} - pieces
    alike: list[str] = []
    for block in plain:
        if in_pieces.isdisjoint(block) and processor.normalize(block).endswith(block):
            alike += block
        else:
            distinct.update({*block} - pieces)
    return sorted(distinct), alike
