"""SentencePiece tokenizer with the pre- and post-processing of the published checkpoints.

    ids = split_digit_commas(sentencepiece(clean(text)))

Text normalization (`clean`) is in `text_cleaning`. A piece that ends in a digit and a comma (`▁1,`)
is re-tokenized without the comma, and the comma becomes a separate piece (reference:
`encode_pieces` of the XLNet release). The result depends only on the piece, so it is computed once
per vocabulary and looked up afterwards.

This module imports TensorFlow for inputs of a model only, which keeps data workers small and fast
to start.
`graph.tokenizer` implements the same tokenizer as TensorFlow operations.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import hashlib
import itertools
import os
import string
import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, overload

import numpy as np
import sentencepiece

from official.xlnet.errors import DataError, require_data
from official.xlnet.files.arguments import AnyPath
from official.xlnet.files.public import public
from official.xlnet.tokenization.added_tokens import (
    added_pieces,
    aliases,
    marked,
    plain,
    rules,
)
from official.xlnet.tokenization.batches.cleaning import clean_all
from official.xlnet.tokenization.sentencepiece_proto import (
    KEEPS_WHITESPACE,
    OF_TOKENIZERS,
    parse_model,
)
from official.xlnet.tokenization.special_tokens import (
    CLS_ID,
    CONTROL_IDS,
    NUM_SPECIAL,
    PAD_ID,
    SEP_ID,
    SPECIAL_PIECES,
    UNK_ID,
    WHITESPACE_PIECES,
    WORD_START,
)
from official.xlnet.tokenization.text_cleaning import clean
from official.xlnet.tokenization.unspaced_scripts import (
    begins_unspaced,
    continues_word,
    ends_unspaced,
)
from official.xlnet.tokenization.vocabulary_file import (
    RECORD,
    read_vocabulary,
    recorded_checksum,
    vocabulary_path,
)

# In UTF-8: bytes after the first one of a character; first bytes of U+3000 to U+9FFF.
_CONTINUATION_BYTES = range(0x80, 0xC0)
_FIRST_BYTES_OF_UNSPACED = range(0xE3, 0xEA)

_TEXTS_PER_CALL = 1024  # Of SentencePiece.
_LONG_TEXT = 180  # Characters from which an array of ids is faster than a list of integers.


class Tokenizer:
    """SentencePiece tokenizer.

    Attributes:
      model_file: path of the SentencePiece model.
      model_proto: contents of the file.
      sha256: SHA-256 of the file, in hexadecimal.
      vocab_size: vocabulary size, V.
      lowercase: whether text is lower-cased.
      keep_accents: whether accents are kept.
      keep_whitespace: whether texts are tokenized as they are, with their line breaks, tabs and
        runs of spaces, quotes and accents: a property of the vocabulary, see `train_vocabulary`.
      is_word_start: bool [V], whether a piece begins a word wherever it stands: it starts with `▁`
        or `<`, is an ASCII punctuation mark, or is of a script without spaces between words. The
        bytes of a byte-fallback vocabulary continue a word, except the first byte of kana and Han.
      is_start_after_unspaced: bool [V], whether a piece begins a word after a piece of such a
        script, as `2024` in `在2024年`, or of white space that is kept.
      ends_unspaced: bool [V], whether a piece ends in such a script, or is such white space.
      letter_case: int32 [V], of pieces that begin a word with a letter: 1 for a capital letter, 0
        for a small one; -1 for all other pieces, also where letters have no case.
      num_characters: int64 [V], number of characters of a piece, spaces included; of the bytes of a
        character, the first one counts.
      added_tokens: {id: text} of the tokens that were added to the vocabulary; see `added_tokens`.
      marks: the rules that mark them in a text, before and after it is cleaned.
      counts: of the texts tokenized so far, numbers of `tokens`, `unknown_tokens` (`<unk>`) and
        `characters`, spaces included; where tokens are unknown, also of `unknown_characters`, which
        are in these, and of `other_case`, letters of which the vocabulary has the other case.
      splits: {id of a piece that ends in a digit and a comma, or stands for an added token: ids
        that replace it}.

      cls_id: id of `<cls>`, the last token of an input.
      sep_id: id of `<sep>`, which ends each text of an input.
      pad_id: id of `<pad>`.

    Example:
      >>> tokenizer = Tokenizer("spiece.model")
      >>> tokenizer.decode(tokenizer.encode("Hello  world"))
      'Hello world'
      >>> encoder(tokenizer(["A fine film.", "Dull."]))["content"].shape
      TensorShape([2, 6, 768])
    """

    cls_id, sep_id, pad_id = CLS_ID, SEP_ID, PAD_ID

    @public()
    def __init__(self, model_file: AnyPath, lowercase: bool = False, keep_accents: bool = False):
        """Loads a SentencePiece model.

        Args:
          model_file: path of a SentencePiece model whose first pieces are `SPECIAL_PIECES`, or of
            a directory that contains it as `spiece.model`.
          lowercase: whether to lower-case text before tokenization.
          keep_accents: whether to keep accents; they are stripped by default.

        Raises:
          DataError: the file is missing, empty, not a SentencePiece model, not the one that the
            checksum beside it belongs to, or a model of another kind: its first pieces are not the
            special tokens, or it marks the ends of words instead of their beginnings.
        """
        model_file = vocabulary_path(model_file)
        self.model_file = model_file
        self.model_proto = read_vocabulary(model_file)
        self.sha256 = hashlib.sha256(self.model_proto).hexdigest()
        where, recorded = f"vocabulary {model_file!r}", recorded_checksum(model_file)
        require_data(
            recorded in (None, self.sha256),
            where,
            f"SHA-256 {recorded!s:.12}…, as in {os.path.basename(model_file)}{RECORD} beside it",
            f"{self.sha256[:12]}…: the file is damaged, or is another model's",
        )
        self.counts: collections.Counter[str] = collections.Counter()
        self._processor = _processor(model_file, self.model_proto)
        model = parse_model(self.model_proto)
        self.keep_whitespace = model.normalizer_spec.name == KEEPS_WHITESPACE
        self.lowercase = lowercase
        self.keep_accents = keep_accents or self.keep_whitespace
        self._cleaning = lowercase, self.keep_accents, self.keep_whitespace
        tokens = added_pieces(model.pieces)
        self.added_tokens = {token.id: token.content for token in tokens.values()}
        self.marks = rules(tokens.values(), *self._cleaning)
        num_pieces, ids = self._processor.vocab_size(), aliases(model.pieces)
        self.vocab_size = num_pieces - len(ids)
        try:
            pieces = [self._processor.id_to_piece(i) for i in range(num_pieces)]
        except UnicodeDecodeError as error:
            raise DataError(
                f"vocabulary {model_file!r}: expected pieces in UTF-8: {error}"
            ) from None
        first = tuple(pieces[:NUM_SPECIAL])
        expected = f"its first pieces to be {' '.join(SPECIAL_PIECES)}"
        require_data(first == SPECIAL_PIECES, where, expected, " ".join(first))
        self._check_space_conventions()
        self._byte = np.array([_byte_of(self._processor, i) for i in range(len(pieces))])
        self._is_byte = self._byte >= 0
        self._continues_character = np.isin(self._byte, _CONTINUATION_BYTES)
        self.num_characters = np.where(
            self._is_byte, ~self._continues_character, [len(plain(piece)) for piece in pieces]
        )
        self.is_word_start = np.where(
            self._is_byte,
            np.isin(self._byte, _FIRST_BYTES_OF_UNSPACED),
            [*map(_begins_word, pieces)],
        )
        begins = [not continues_word(piece) for piece in pieces]
        self.is_start_after_unspaced = np.where(self._is_byte, ~self._continues_character, begins)
        blank = WHITESPACE_PIECES if self.keep_whitespace else ()
        self.ends_unspaced = np.array([ends_unspaced(p) or p in blank for p in pieces])
        self.is_word_start |= np.isin(pieces, blank)
        self.letter_case = np.array([_letter_case(piece) for piece in pieces], np.int32)
        splits_commas = model.normalizer_spec.name not in (OF_TOKENIZERS, KEEPS_WHITESPACE)
        self._parts = {
            i: self._split_digit_comma(piece)
            for i, piece in enumerate(pieces)
            if splits_commas and len(piece) > 1 and piece[-1] == "," and piece[-2].isdigit()
        }
        self.splits = {i: [*map(self.piece_to_id, parts)] for i, parts in self._parts.items()}
        self.splits |= {i: [token] for i, token in ids.items()}
        self._parts |= {i: [pieces[i]] for i in ids}
        self._is_split = np.isin(np.arange(num_pieces), list(self.splits))

    @contextlib.contextmanager
    def uncounted(self) -> Iterator[None]:
        """Context manager in which texts that have been counted are tokenized again."""
        counts, self.counts = self.counts, collections.Counter()
        try:
            yield
        finally:
            self.counts = counts

    def __repr__(self) -> str:
        return f"Tokenizer({self.vocab_size:,} pieces)"

    def __call__(
        self,
        texts: str | list[str] | tuple[str, ...],
        pairs: str | list[str] | tuple[str, ...] | None = None,
        max_length: int | None = None,
        padding: str = "longest",
        truncation: str = "longest_first",
    ) -> dict[str, np.ndarray]:
        """Tokenizes texts, or pairs of texts, to inputs of the encoder: `A SEP [B SEP] CLS`.

        Args:
          texts: the texts; a string is a batch of one.
          pairs: the second text of each example, in a segment of its own.
          max_length: maximum length in tokens, special tokens included. None for no limit.
          padding: `longest`, to the longest example of the batch, or `max_length`. Padding is on
            the left, so CLS is the last token of every row.
          truncation: which text is truncated at its end: `longest_first`, the longest one, token
            by token; `only_first`; or `only_second`.

        Returns:
          token_ids: int32 [B, T].
          segment_ids: int32 [B, T], 0 for A, 1 for B, 2 for CLS and 4 for padding.
          is_padding: bool [B, T].

        Raises:
          TypeError: the texts are not strings.
          ConfigError: an argument is not one of its values.
          DataError: the columns differ in length, or `max_length` leaves no room for a text.

        Example:
          >>> tokenizer(["A fine film.", "Dull."], max_length=128)["token_ids"].shape
          (2, 6)
        """
        from official.xlnet.tokenization.graph.packing import (
            cut_columns,
            input_length,
            pack_columns,
        )

        columns = []
        for part in [texts] if pairs is None else [texts, pairs]:
            texts_of_part = [part] if isinstance(part, str) else part
            columns.append(self.encode(texts_of_part))
        length = input_length(columns, max_length, padding)
        return pack_columns(cut_columns(columns, length, truncation), length)

    def __len__(self) -> int:
        """The vocabulary size, V."""
        return self.vocab_size

    @overload
    def encode(self, text: str) -> list[int]: ...

    @overload
    def encode(self, text: list[str] | tuple[str, ...]) -> list[list[int]]: ...

    def encode(self, text):
        """Tokenizes a text, or each text of a list, without adding special tokens.

        A special token spelled out in the text (`<sep>`) is treated as ordinary text. The only
        exception is `<eop>`, a user-defined symbol of the published vocabularies.

        Args:
          text: any string, or a list of strings.

        Returns:
          Token ids; for a list, a list of token ids for each text.

        Raises:
          TypeError: a text is not a string.
        """
        if isinstance(text, str):
            cleaned = self.clean(text)
            pieces = self._processor.encode(cleaned, return_type=int)
            if UNK_ID in pieces:
                self._count_unknown([cleaned], np.array(pieces))
            ids = self._split(pieces)
            self._count(np.array(ids, np.int32))
            return ids
        from official.xlnet.tokenization.batches.arguments import checked_texts

        return [row.tolist() for row in self.encode_batch(checked_texts(text))]

    def encode_batch(self, texts: Iterable[str]) -> list[np.ndarray]:
        """Tokenizes a batch of texts in the calling thread.

        Args:
          texts: any strings.

        Returns:
          Token ids of each text, int32 [number of tokens].
        """
        ids, lengths = self.encode_flat(texts)
        ends = np.cumsum(lengths)
        return [ids[a:b] for a, b in zip((ends - lengths).tolist(), ends.tolist(), strict=True)]

    def encode_flat(self, texts: Iterable[str]) -> tuple[np.ndarray, np.ndarray]:
        """Tokenizes a batch of texts in the calling thread, without an array for each text.

        Args:
          texts: any strings.

        Returns:
          ids: token ids of all texts, int32 [number of tokens].
          lengths: number of tokens of each text, int64 [number of texts].
        """
        iterator, parts = iter(texts), [(np.zeros(0, np.int32), np.zeros(0, np.int64))]
        while some := list(itertools.islice(iterator, _TEXTS_PER_CALL)):
            parts.append(self._encode_some(some))
        ids, lengths = zip(*parts, strict=True)
        return np.concatenate(ids), np.concatenate(lengths)

    def _encode_some(self, texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
        cleaned = self._clean_all(texts)
        ids, lengths = self._pieces(cleaned)
        if len(unknown := np.flatnonzero(ids == UNK_ID)):
            ends = np.cumsum(lengths)
            rows = np.unique(np.searchsorted(ends, unknown, side="right")).tolist()
            pieces = [ids[ends[row] - lengths[row] : ends[row]] for row in rows]
            self._count_unknown([cleaned[row] for row in rows], np.concatenate(pieces))
        if len(places := np.flatnonzero(self._is_split.take(ids))):
            parts = [self.splits[i] for i in ids[places].tolist()]
            num_more = np.array([len(part) - 1 for part in parts])
            row = np.searchsorted(np.cumsum(lengths), places, side="right")
            np.add.at(lengths, row, num_more)
            ids[places] = [part[0] for part in parts]
            more = [i for part in parts for i in part[1:]]
            ids = np.insert(ids, np.repeat(places + 1, num_more), more)
        self._count(ids)
        return ids, lengths

    def _pieces(self, cleaned: list[str]) -> tuple[np.ndarray, np.ndarray]:
        """SentencePiece's ids of cleaned texts, and the number of each; as `encode_flat`."""
        if sum(map(len, cleaned)) > _LONG_TEXT * len(cleaned):
            arrays = self._processor.encode(cleaned, return_type="numpy", num_threads=1)
            return np.concatenate(arrays), np.fromiter(map(len, arrays), np.int64, len(arrays))
        rows = self._processor.encode(cleaned, return_type=int, num_threads=1)
        lengths = np.fromiter(map(len, rows), np.int64, len(rows))
        ids = np.empty(lengths.sum(), np.int32)
        # Half again as fast as `np.fromiter`.
        struct.pack_into(f"{len(ids)}i", ids.data, 0, *itertools.chain.from_iterable(rows))
        return ids, lengths

    def _count(self, ids: np.ndarray) -> None:
        """Counts tokens, and the characters of those that are known."""
        num_unknown = int(np.count_nonzero(ids == UNK_ID))
        num_characters = int(self.num_characters.take(ids).sum())
        num_characters -= num_unknown * int(self.num_characters[UNK_ID])
        self.counts.update(tokens=len(ids), unknown_tokens=num_unknown, characters=num_characters)

    def _count_unknown(self, cleaned: list[str], ids: np.ndarray) -> None:
        """Counts the characters of `<unk>` in texts: those that their other pieces leave.

        Args:
          cleaned: the texts, cleaned.
          ids: integers [number of pieces], the pieces of all texts.
        """
        from official.xlnet.tokenization.batches.unknown_characters import unknown_counts

        normalized = plain("".join(self._processor.normalize(cleaned)))
        num_known = int(self.num_characters[ids[ids != UNK_ID]].sum())
        self.counts.update(unknown_counts(normalized, num_known, self._single_characters))

    @functools.cached_property
    def _single_characters(self) -> frozenset[str]:
        """Characters that are a piece."""
        pieces = map(self._processor.id_to_piece, range(self.vocab_size))
        return frozenset(piece for piece in pieces if len(piece) == 1)

    def blank_characters(self, characters: str) -> list[str]:
        """Returns those that the normalizer of the vocabulary removes or makes a space."""
        normalized = self._processor.normalize([f"a{c}a" for c in characters])
        pairs = zip(characters, normalized, strict=True)
        return [c for c, text in pairs if text.replace(WORD_START, "") == "aa"]

    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """Tokenizes a text and returns the character offsets of each token.

        Args:
          text: the original text, before normalization.

        Returns:
          ids: token ids, equal to `encode(text)`.
          offsets: (start, end) of each token in code points of `text`, excluding surrounding
            whitespace; start equals end for a token that is only the space before a word. All bytes
            of a character have its offsets.

        Example:
          >>> tokenizer.encode_with_offsets(" in  1,000")  # ▁in ▁1,000
          ([25, 1234], [(1, 3), (5, 10)])
        """
        from official.xlnet.tokenization.offsets import OffsetEncoder

        encoder = OffsetEncoder(
            processor=self._processor,
            marks=self.marks,
            cleaning=self._cleaning,
            splits=self.splits,
            parts=self._parts,
            bytes_of_pieces=self._byte,
            continues_character=self._continues_character,
        )
        ids, offsets = encoder.encode(text)
        self._count(np.array(ids, np.int32))
        if UNK_ID in ids:
            cleaned = self.clean(text)
            pieces = self._processor.encode(cleaned, return_type=int)
            self._count_unknown([cleaned], np.array(pieces))
        return ids, offsets

    @overload
    def decode(self, ids: Sequence[int]) -> str: ...

    @overload
    def decode(self, ids: Sequence[Sequence[int]]) -> list[str]: ...

    def decode(self, ids):
        """Converts token ids to text; special tokens except `<unk>` and `<eop>` are dropped.

        Args:
          ids: token ids; or a batch of them, as a list of rows, an array or a tensor.

        Returns:
          The text; for a batch, a list of texts.

        Raises:
          DataError: an id is out of range.
          TypeError: an id is not an integer.
        """
        from official.xlnet.tokenization.batches.arguments import checked_ids

        rows = checked_ids(ids)
        if rows and isinstance(rows[0], Iterable):
            return [self.decode(row) for row in rows]
        self._check(rows)
        return plain(self._processor.decode(rows))

    def id_to_piece(self, i: int) -> str:
        """Returns the piece of a token id; raises `DataError` if the id is not in [0, V)."""
        self._check([i])
        return plain(self._processor.id_to_piece(int(i)))

    def piece_to_id(self, piece: str) -> int:
        """Returns the id of a piece, or 0 (`<unk>`) if it is not in the vocabulary."""
        added = next((i for i, text in self.added_tokens.items() if text == piece), None)
        return self._processor.piece_to_id(piece) if added is None else added

    def clean(self, text: str) -> str:
        """Normalizes text for SentencePiece and marks added tokens; see `text_cleaning.clean`."""
        before, after = self.marks
        cleaned = clean(marked(text, before), *self._cleaning)
        return marked(cleaned, after)

    def _clean_all(self, texts: list[str]) -> list[str]:
        """As `clean` of each text."""
        if any(self.marks) or self.keep_whitespace:
            return [*map(self.clean, texts)]
        return clean_all(texts, self.lowercase, self.keep_accents)

    def _check_space_conventions(self) -> None:
        """Raises `DataError` if the SentencePiece model has other conventions than ours."""
        require_data(
            not "".join(self._processor.encode("a", return_type=str)).endswith(WORD_START),
            f"vocabulary {self.model_file!r}",
            "a space before a word",
            "one after it (treat_whitespace_as_suffix)",
        )

    def _check(self, ids: Sequence[int]) -> None:
        wrong = next((i for i in ids if not 0 <= i < self.vocab_size), None)
        where, expected = f"vocabulary {self.model_file!r}", f"ids from 0 to {self.vocab_size - 1}"
        require_data(wrong is None, where, expected, wrong)

    def _split(self, ids: list[int]) -> list[int]:
        if self.splits.keys().isdisjoint(ids):
            return ids
        return [part for i in ids for part in self.splits.get(i, (i,))]

    def _split_digit_comma(self, piece: str) -> list[str]:
        parts = self._processor.encode(piece[:-1].replace(WORD_START, ""), return_type=str)
        if piece[0] != WORD_START and parts[0][0] == WORD_START:
            parts = [parts[0][1:], *parts[1:]] if len(parts[0]) > 1 else parts[1:]
        return [*parts, ","]


def num_pieces(model_file: str) -> int:
    """Returns the number of pieces of a vocabulary.

    Raises:
      DataError: the file is missing or not a SentencePiece model.
    """
    model_proto = read_vocabulary(model_file)
    processor = _processor(model_file, model_proto)
    return processor.vocab_size() - len(aliases(parse_model(model_proto).pieces))


def _byte_of(processor: Any, piece_id: int) -> int:
    """The byte that a piece such as `<0xE2>` stands for; -1 for other pieces."""
    if not processor.is_byte(piece_id):
        return -1
    return int(processor.id_to_piece(piece_id)[1:-1], 16)


def _processor(model_file: str, model_proto: bytes) -> sentencepiece.SentencePieceProcessor:
    processor = sentencepiece.SentencePieceProcessor()
    try:
        processor.load_from_serialized_proto(model_proto)
        if not all(map(processor.is_control, CONTROL_IDS[: processor.vocab_size()])):
            processor.load_from_serialized_proto(parse_model(model_proto).SerializeToString())
    except RuntimeError:
        raise DataError(
            f"vocabulary {model_file!r}: expected a SentencePiece model, got another file of "
            f"{len(model_proto)} bytes"
        ) from None
    return processor


def _begins_word(piece: str) -> bool:
    return (
        piece.startswith((WORD_START, "<"))
        or (len(piece) == 1 and piece in string.punctuation)
        or begins_unspaced(piece)
    )


def _letter_case(piece: str) -> int:
    first = piece.removeprefix(WORD_START)[:1] if piece.startswith(WORD_START) else ""
    return int(first.isupper()) if first.isupper() or first.islower() else -1
