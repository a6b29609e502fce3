"""SentencePiece tokenizer with the pre- and post-processing of the published checkpoints.

    ids = split_digit_commas(sentencepiece(clean(text)))

Text normalization (`clean`) is in `text_cleaning`. A piece that ends in a digit and a comma (`▁1,`)
is re-tokenized without the comma, and the comma becomes a separate piece (reference:
`encode_pieces` of the XLNet release). The result depends only on the piece, so it is computed once
per vocabulary and looked up afterwards.

This module does not import TensorFlow, which keeps data workers small and fast to start.
`tf_tokenizer` implements the same tokenizer as TensorFlow operations.
"""

from __future__ import annotations

import hashlib
import os
import string
from collections.abc import Iterable, Sequence

import numpy as np
import sentencepiece

from official.xlnet.errors import DataError
from official.xlnet.files.atomic import atomic_write
from official.xlnet.tokenization.special_tokens import NUM_SPECIAL, SPECIAL_PIECES, VOCAB_FILE
from official.xlnet.tokenization.text_cleaning import clean, clean_with_alignment

WORD_START = "\N{LOWER ONE EIGHTH BLOCK}"  # Marks the space before a word in SentencePiece.


_RECORD = ".sha256"  # Added to the name of a vocabulary.


class Tokenizer:
    """SentencePiece tokenizer.

    Attributes:
      model_file: path of the SentencePiece model.
      model_proto: contents of the file.
      sha256: SHA-256 of the file, in hexadecimal.
      vocab_size: vocabulary size, V.
      lowercase: whether text is lower-cased.
      keep_accents: whether accents are kept.
      is_word_start: bool [V], whether a piece begins a word: it starts with `▁` or `<`, or is an
        ASCII punctuation mark.
      splits: {id of a piece that ends in a digit and a comma: ids that replace it}.

    Example:
      >>> tokenizer = Tokenizer("spiece.model")
      >>> tokenizer.decode(tokenizer.encode("Hello  world"))
      'Hello world'
    """

    def __init__(self, model_file: str, lowercase: bool = False, keep_accents: bool = False):
        """Loads a SentencePiece model.

        Args:
          model_file: path of a SentencePiece model whose first pieces are `SPECIAL_PIECES`.
          lowercase: whether to lower-case text before tokenization.
          keep_accents: whether to keep accents; they are stripped by default.

        Raises:
          DataError: the file is missing, empty, not a SentencePiece model, not the one that the
            checksum beside it belongs to, or its first pieces are not the special tokens.
        """
        self.model_file = model_file
        self.model_proto = _read(model_file)
        self.sha256 = hashlib.sha256(self.model_proto).hexdigest()
        _check_record(model_file, self.sha256)
        self.lowercase = lowercase
        self.keep_accents = keep_accents
        self._processor = _processor(model_file, self.model_proto)
        self.vocab_size = self._processor.vocab_size()
        pieces = [self._processor.id_to_piece(i) for i in range(self.vocab_size)]
        found = tuple(pieces[:NUM_SPECIAL])
        if found != SPECIAL_PIECES:
            raise DataError(
                f"vocabulary {model_file!r}: expected its first pieces to be "
                f"{' '.join(SPECIAL_PIECES)}, got {' '.join(found)}"
            )
        self.is_word_start = np.array([_begins_word(piece) for piece in pieces])
        self.splits = {
            i: [self._processor.piece_to_id(p) for p in self._split_digit_comma(piece)]
            for i, piece in enumerate(pieces)
            if len(piece) > 1 and piece[-1] == "," and piece[-2].isdigit()
        }
        self._is_split = np.zeros(self.vocab_size, bool)
        self._is_split[list(self.splits)] = True

    def encode(self, text: str) -> list[int]:
        """Tokenizes a text, without adding special tokens.

        A special token spelled out in the text (`<sep>`) is treated as ordinary text. The only
        exception is `<eop>`, a user-defined symbol of the published vocabularies.

        Args:
          text: any string.

        Returns:
          Token ids.
        """
        return self._split(self._processor.encode(self.clean(text), return_type=int))

    def encode_batch(self, texts: Iterable[str]) -> list[np.ndarray]:
        """Tokenizes a batch of texts in the calling thread.

        Args:
          texts: any strings.

        Returns:
          Token ids of each text, int32 [number of tokens].
        """
        cleaned = [clean(text, self.lowercase, self.keep_accents) for text in texts]
        rows = self._processor.encode(cleaned, return_type="numpy", num_threads=1)
        if not self.splits or not rows:
            return rows
        lengths = np.array([len(row) for row in rows])
        needing = np.flatnonzero(self._is_split[np.concatenate(rows)])
        for row in np.unique(np.searchsorted(np.cumsum(lengths), needing, side="right")):
            rows[row] = np.array(self._split(rows[row].tolist()), np.int32)
        return rows

    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """Tokenizes a text and returns the character offsets of each token.

        Args:
          text: the original text, before normalization.

        Returns:
          ids: token ids, equal to `encode(text)`.
          offsets: (start, end) of each token in code points of `text`, excluding surrounding
            whitespace; start equals end for a token that is only the space before a word.

        Example:
          >>> tokenizer.encode_with_offsets(" in  1,000")  # ▁in ▁1,000
          ([25, 1234], [(1, 3), (5, 10)])
        """
        cleaned, source_start, source_end = clean_with_alignment(
            text, self.lowercase, self.keep_accents
        )
        mapping = self._processor.encode(cleaned, return_type="offset_mapping", return_bytes=False)
        normalized, offsets = self._processor.normalize(cleaned, with_offsets=True)
        # Several characters may have the same source (`ﬁ`); each ends where the next source begins.
        following = np.minimum(np.searchsorted(offsets, offsets, side="right"), len(offsets) - 1)
        visible = [
            (offsets[k], offsets[following[k]])
            for k, character in enumerate(normalized)
            if character != WORD_START
        ]
        starts, ends = [*source_start.tolist(), len(text)], source_end.tolist()

        ids: list[int] = []
        spans: list[tuple[int, int]] = []
        first = 0  # Index in `visible` of the next piece's first character.
        for i, piece in zip(mapping["ids"], mapping["pieces"], strict=True):
            parts = [(j, self.id_to_piece(j)) for j in self.splits.get(i, ())] or [(i, piece)]
            for j, part in parts:
                last = first + len(part) - part.count(WORD_START)
                start = end = visible[first][0] if first < len(visible) else len(cleaned)
                if last > first:
                    end = visible[last - 1][1]
                    while end > start + 1 and cleaned[end - 1] == " ":
                        end -= 1
                ids.append(j)
                spans.append((starts[start], ends[end - 1] if last > first else starts[start]))
                first = last
        return ids, spans

    def decode(self, ids: Sequence[int]) -> str:
        """Decodes token ids to text; special tokens other than `<unk>` and `<eop>` are skipped.

        Args:
          ids: token ids in [0, V).

        Returns:
          The text.

        Raises:
          DataError: an id is not in [0, V).
        """
        ids = [int(i) for i in ids]
        self._check(ids)
        return self._processor.decode(ids)

    def id_to_piece(self, i: int) -> str:
        """Returns the piece of a token id; raises `DataError` if the id is not in [0, V)."""
        self._check([i])
        return self._processor.id_to_piece(int(i))

    def piece_to_id(self, piece: str) -> int:
        """Returns the id of a piece, or 0 (`<unk>`) if it is not in the vocabulary."""
        return self._processor.piece_to_id(piece)

    def clean(self, text: str) -> str:
        """Normalizes text for SentencePiece; see `text_cleaning.clean`."""
        return clean(text, self.lowercase, self.keep_accents)

    def _check(self, ids: Sequence[int]) -> None:
        wrong = [i for i in ids if not 0 <= i < self.vocab_size]
        if wrong:
            raise DataError(
                f"vocabulary {self.model_file!r}: expected ids from 0 to {self.vocab_size - 1}, "
                f"got {wrong[0]}"
            )

    def _split(self, ids: list[int]) -> list[int]:
        if self.splits.keys().isdisjoint(ids):
            return ids
        return [part for i in ids for part in self.splits.get(i, (i,))]

    def _split_digit_comma(self, piece: str) -> list[str]:
        parts = self._processor.encode(piece[:-1].replace(WORD_START, ""), return_type=str)
        if piece[0] != WORD_START and parts[0][0] == WORD_START:
            parts = [parts[0][1:], *parts[1:]] if len(parts[0]) > 1 else parts[1:]
        return [*parts, ","]


def copy_vocabulary(vocab_file: str, directory: str) -> None:
    """Copies a vocabulary to `spiece.model`, and its checksum to `spiece.model.sha256` beside it.

    `Tokenizer` compares the two, so that a model is never read with another model's vocabulary;
    so does `sha256sum --check`.
    """
    target = os.path.join(directory, VOCAB_FILE)
    content = _read(vocab_file)
    record = f"{hashlib.sha256(content).hexdigest()}  {VOCAB_FILE}\n"
    for path, data in ((target, content), (target + _RECORD, record.encode())):
        with atomic_write(path) as file:
            file.write(data)


def _check_record(model_file: str, sha256: str) -> None:
    try:
        with open(model_file + _RECORD, "rb") as file:
            expected = file.read(64).decode("ascii", "replace")
    except FileNotFoundError:
        return  # A vocabulary alone, or a directory of before there were records.
    if sha256 != expected:
        raise DataError(
            f"vocabulary {model_file!r}: expected SHA-256 {expected[:12]}…, as in the "
            f"{os.path.basename(model_file)}{_RECORD} beside it, got {sha256[:12]}…: the file is "
            "damaged, or is another model's"
        )


def _read(model_file: str) -> bytes:
    try:
        with open(model_file, "rb") as file:
            model_proto = file.read()
    except OSError as error:
        raise DataError(
            f"no vocabulary at {model_file!r}: expected a SentencePiece model ({error.strerror})"
        ) from None
    if not model_proto:
        raise DataError(
            f"vocabulary {model_file!r}: expected a SentencePiece model, got an empty file"
        )
    return model_proto


def _processor(model_file: str, model_proto: bytes) -> sentencepiece.SentencePieceProcessor:
    processor = sentencepiece.SentencePieceProcessor()
    try:
        processor.load_from_serialized_proto(model_proto)
    except RuntimeError:
        raise DataError(
            f"vocabulary {model_file!r}: expected a SentencePiece model, got another file of "
            f"{len(model_proto)} bytes"
        ) from None
    return processor


def _begins_word(piece: str) -> bool:
    return piece.startswith((WORD_START, "<")) or (len(piece) == 1 and piece in string.punctuation)
