"""SentencePiece inside a TensorFlow graph, equal to the Python library on every string.

tensorflow-text has two SentencePiece operations and neither is equal to the library as it comes.
`SentencepieceTokenizer` holds an older release that compares sums of scores in another precision:
where two ways to cut a text tie (`000` as `0 00` or `00 0`) it may take the other one, in one
line of real text in a hundred. `FastSentencepieceTokenizer` compares like the library, in float32
from left to right, but counts an unknown character once a byte and knows nothing of user-defined
symbols. So it is given a vocabulary in which nothing is unknown:

* every character without a piece has one, with the score the library gives to unknown
  characters; its id becomes `<unk>` afterwards, and neighbouring `<unk>` become one;
* blocks of characters that Unicode has not assigned, a million of them, share one stand-in;
* user-defined symbols have the score the library gives them.

One difference is left: beyond a total score of -100,000, at least ten thousand pieces into a text,
the library shifts its sums to keep their precision, and ties may fall otherwise from there on.
"""

from __future__ import annotations

import sys
import unicodedata

import numpy as np
import sentencepiece
import tensorflow as tf
import tensorflow_text
from google.protobuf import descriptor_pb2, descriptor_pool, message, message_factory

from official.xlnet.errors import DataError
from official.xlnet.tokenization.special_tokens import UNK_ID

_NORMAL, _UNKNOWN, _CONTROL, _USER_DEFINED = 1, 2, 3, 4  # Types of pieces.
_UNIGRAM = 1  # Type of model.
_UNKNOWN_PENALTY = np.float32(10)  # The library's kUnkPenalty.
_BLOCK = 256  # Code points are looked at in blocks of this size.


class GraphSentencePiece(tf.Module):
    """Cuts cleaned text into ids.

    Attributes:
      replaced: int32 [number of code points], those that must not be in a text to be cut;
      stand_in: the code point to put in their place.
    """

    def __init__(self, model_proto: bytes):
        """Takes the bytes of a SentencePiece model.

        Raises:
          DataError: the model is not one that can be run in a graph: of unigram type, with a
            normalizer, without byte pieces.
        """
        super().__init__(name="sentencepiece")
        model = _parse(model_proto)
        self._vocab_size = len(model.pieces)
        pieces = {p.piece for p in model.pieces if p.type in (_NORMAL, _USER_DEFINED)}
        own_piece, alike = _unknown_characters(pieces, model_proto)
        self.stand_in = ord(alike[0])
        self.replaced = np.array([0, *map(ord, alike[1:])], np.int32)  # NUL cannot be a piece.

        lowest = min(np.float32(p.score) for p in model.pieces if p.type == _NORMAL)
        for piece in model.pieces:
            if piece.type == _USER_DEFINED:
                piece.score = 0.1 * (len(piece.piece.encode()) - 1)
        for character in own_piece + alike[:1]:
            model.pieces.add(piece=character, score=lowest - _UNKNOWN_PENALTY)
        self._tokenizer = tensorflow_text.FastSentencepieceTokenizer(model.SerializeToString())

    def __call__(self, text: tf.Tensor) -> tf.RaggedTensor:
        """Returns the ids of texts.

        Args:
          text: string [B], UTF-8, without any code point of `replaced`.

        Returns:
          int32 [B, (number of pieces)].
        """
        return self.with_lengths(text)[0]

    def with_lengths(self, text: tf.Tensor) -> tuple[tf.RaggedTensor, tf.RaggedTensor]:
        """Returns the ids of texts and, for each, how many neighbours became one `<unk>`."""
        ids = self._tokenizer.tokenize(text).with_row_splits_dtype(tf.int64)
        values = tf.where(ids.values < self._vocab_size, ids.values, UNK_ID)
        row = ids.value_rowids()
        both_unknown = (values[1:] == UNK_ID) & (values[:-1] == UNK_ID) & (row[1:] == row[:-1])
        keep = tf.concat([[True], ~both_unknown], 0)[: tf.size(values)]
        kept = tf.ragged.boolean_mask(ids.with_values(values), ids.with_values(keep))
        group = tf.cumsum(tf.cast(keep, tf.int32)) - 1
        return kept, kept.with_values(tf.math.bincount(group, dtype=tf.int32))


def _unknown_characters(pieces: set[str], model_proto: bytes) -> tuple[list[str], list[str]]:
    """Splits the characters without a piece: those that differ to SentencePiece, those that do not.

    The latter are unassigned, are in no piece and are left as they are by the normalizer.
    """
    processor = sentencepiece.SentencePieceProcessor(model_proto=model_proto)
    in_pieces = set("".join(pieces))
    different, alike = [], []
    for first in range(0, sys.maxunicode + 1, _BLOCK):
        block = [chr(i) for i in range(max(first, 1), first + _BLOCK)]
        categories = {unicodedata.category(c) for c in block}
        if categories == {"Cs"}:
            continue
        text = "".join(block)
        if (
            categories <= {"Cn", "Co"}
            and in_pieces.isdisjoint(block)
            and processor.normalize(text).endswith(text)
        ):
            alike += block
        else:
            different += [c for c in block if c not in pieces]
    return different, alike


def _parse(model_proto: bytes) -> message.Message:
    model = _model_class()()
    model.ParseFromString(model_proto)
    odd = [p.piece for p in model.pieces if not _NORMAL <= p.type <= _USER_DEFINED]
    for expected, holds, got in (
        ("of unigram type", model.trainer_spec.model_type == _UNIGRAM, "another type"),
        ("with a normalizer", bool(model.normalizer_spec.precompiled_charsmap), "none"),
        ("without unused or byte pieces", not odd, " ".join(odd[:3])),
    ):
        if not holds:
            raise DataError(f"vocabulary in a graph: expected a model {expected}, got {got}")
    return model


def _model_class() -> type[message.Message]:
    """The part of SentencePiece's `ModelProto` that is needed; the rest is kept as it is.

    The library's own Python classes do not load beside the protobuf version of TensorFlow.
    """
    field = descriptor_pb2.FieldDescriptorProto
    once, many = field.LABEL_OPTIONAL, field.LABEL_REPEATED
    fields = {
        "Piece": [
            ("piece", 1, once, field.TYPE_STRING, None),
            ("score", 2, once, field.TYPE_FLOAT, None),
            ("type", 3, once, field.TYPE_INT32, str(_NORMAL)),
        ],
        "TrainerSpec": [("model_type", 3, once, field.TYPE_INT32, str(_UNIGRAM))],
        "NormalizerSpec": [("precompiled_charsmap", 2, once, field.TYPE_BYTES, None)],
        "Model": [
            ("pieces", 1, many, field.TYPE_MESSAGE, "Piece"),
            ("trainer_spec", 2, once, field.TYPE_MESSAGE, "TrainerSpec"),
            ("normalizer_spec", 3, once, field.TYPE_MESSAGE, "NormalizerSpec"),
        ],
    }
    file = descriptor_pb2.FileDescriptorProto(
        name="xlnet_vocabulary.proto", package="xlnet_vocabulary", syntax="proto2"
    )
    for message_name, entries in fields.items():
        kind = file.message_type.add(name=message_name)
        for name, number, label, type_, extra in entries:  # type: ignore[attr-defined]
            entry = kind.field.add(name=name, number=number, label=label, type=type_)
            if type_ == field.TYPE_MESSAGE:
                entry.type_name = f".{file.package}.{extra}"
            elif extra:
                entry.default_value = extra
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{file.package}.Model"))
