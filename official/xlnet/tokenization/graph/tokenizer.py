"""Tokenization and input packing as TensorFlow operations, for serving raw text.

`GraphTokenizer` returns the same ids as `tokenizer.Tokenizer` for every string. Text normalization
does not use the Unicode tables of TensorFlow or tensorflow-text, whose versions differ from
Python's: Python's mapping of each code point is stored in the graph as a lookup table. A SavedModel
is self-contained; it includes these tables and the vocabulary.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Mapping, Sequence

import numpy as np
import tensorflow as tf

from official.xlnet.configs.validation import require, require_type
from official.xlnet.tokenization.added_tokens import Rules
from official.xlnet.tokenization.graph.characters import PagedTable, character_blocks, whitespace
from official.xlnet.tokenization.graph.packing import pack, padded
from official.xlnet.tokenization.graph.ragged import ranges
from official.xlnet.tokenization.graph.sentencepiece import GraphSentencePiece
from official.xlnet.tokenization.text_cleaning import clean
from official.xlnet.tokenization.tokenizer import Tokenizer

_SEPARATOR = "\ue000"  # Private-use character: unchanged by normalization, separates words.
_IGNORABLE, _CASED, _OTHER = range(3)  # Character classes of the Final_Sigma rule.


class GraphTokenizer(tf.Module):
    """Tokenizer for strings, as TensorFlow operations.

    Example:
      >>> tokenizer = GraphTokenizer(Tokenizer("spiece.model"))
      >>> tokenizer.pack([tokenizer(["a text", "longer"]), tokenizer(["b", "c"])], length=128)
      {'token_ids': <int32 [2, 128]>, 'segment_ids': <int32 [2, 128]>, 'is_padding': <bool …>}

    Attributes:
      plain: the Python tokenizer.
      white_space: regular expression of a whitespace character.
      fold: normalization of single code points.
      sentencepiece: tokenizer for normalized text.
      split: replacements of the pieces that end in a digit and a comma.
    """

    def __init__(self, tokenizer: Tokenizer):
        """Creates the TensorFlow counterpart of a Python tokenizer.

        Args:
          tokenizer: supplies the vocabulary and the normalization options.

        Raises:
          DataError: the vocabulary is not supported; see `GraphSentencePiece`.
        """
        super().__init__(name="graph_tokenizer")
        require_type("tokenizer", tokenizer, Tokenizer)
        self.plain = tokenizer
        self.sentencepiece = GraphSentencePiece(tokenizer.model_proto)
        characters = [c for block in character_blocks()[1] for c in block if c != _SEPARATOR]
        folds = _folds(characters, tokenizer.lowercase, tokenizer.keep_accents)
        folds |= {code: [ord(c)] for code, c in self.sentencepiece.whitespace.items()}
        replaced, stand_in = self.sentencepiece.replaced, self.sentencepiece.stand_in
        self.fold = Expansion(folds, replaced, [stand_in])
        self._nul = chr(stand_in)
        codes = "".join(f"\\x{{{ord(character):x}}}" for character in whitespace())
        self.white_space = f"[{codes}]"
        self.split = Expansion(tokenizer.splits)
        self._kind = PagedTable(_case_classes(characters)) if tokenizer.lowercase else None

    def __repr__(self) -> str:
        return f"Graph{self.plain!r}"

    def __reduce__(self) -> tuple:
        return type(self), (self.plain,)

    def __call__(self, text: tf.Tensor) -> tf.RaggedTensor:
        """Tokenizes a batch of texts, without adding special tokens.

        Args:
          text: string [B], UTF-8; invalid bytes are replaced by U+FFFD, as in
            `bytes.decode("utf-8", "replace")`.

        Returns:
          Token ids, int32 [B, (number of tokens)]; each row equals `Tokenizer.encode`.
        """
        expected = "strings; for inputs of Keras there is the layer `Preprocessor`"
        require(type(text).__name__ != "KerasTensor", "text", expected, text)
        return self.split(self.sentencepiece(self.clean(text)))

    def clean(self, text: tf.Tensor) -> tf.Tensor:
        """Normalizes a batch of texts; see `text_cleaning.clean`.

        Args:
          text: string [B], UTF-8.

        Returns:
          string [B], with the code points in `GraphSentencePiece.replaced` replaced.
        """
        before, after = self.plain.marks
        text = tf.strings.unicode_transcode(text, "UTF-8", "UTF-8", errors="replace")
        text = _rewritten(text, before)
        if self.plain.keep_whitespace:
            return _rewritten(self._clean_any(text), after)
        text = tf.strings.regex_replace(text, f"{self.white_space}+", " ")
        text = tf.strings.regex_replace(text, "^ | $", "")
        text = tf.strings.regex_replace(text, "``|''", '"')
        text = tf.strings.regex_replace(text, r"\x00", self._nul)
        num_bytes = tf.strings.length(text, unit="BYTE")
        is_ascii = tf.reduce_all(num_bytes == tf.strings.length(text, unit="UTF8_CHAR"))
        lower = tf.strings.lower if self.plain.lowercase else tf.identity
        text = tf.cond(is_ascii, lambda: lower(text), lambda: self._clean_any(text))
        return _rewritten(text, after)

    def _clean_any(self, text: tf.Tensor) -> tf.Tensor:
        code_points = self.fold(tf.strings.unicode_decode(text, "UTF-8"))
        if self._kind is not None:
            code_points = _with_final_sigma(code_points, self._kind(code_points.values))
        return tf.strings.unicode_encode(code_points, "UTF-8")

    def pack(
        self,
        columns: Sequence[tf.RaggedTensor],
        length: int | tf.Tensor,
        truncation_side: str = "right",
    ) -> dict[str, tf.Tensor]:
        """Packs text columns into fixed-length model inputs; see `packing.pack`.

        Args:
          columns: for each text column, token ids int32 [B, (number of tokens)].
          length: sequence length in tokens, T; an int or an int32 scalar tensor.
          truncation_side: side from which long texts are truncated, `right` or `left`.

        Returns:
          A dictionary of `token_ids` int32, `segment_ids` int32 and `is_padding` bool, each [B, T].

        Raises:
          DataError: `length` is an int that is too short to hold a token besides SEP and CLS.
        """
        return padded(pack(columns, length, truncation_side), length)


class Expansion(tf.Module):
    """Replaces integers of a ragged tensor by (possibly empty) sequences of integers."""

    def __init__(
        self,
        table: Mapping[int, Sequence[int]],
        others: np.ndarray | Sequence[int] = (),
        for_others: Sequence[int] = (),
    ):
        """Creates the replacement table; integers that are not listed are unchanged.

        Args:
          table: {integer: its replacement}.
          others: further integers, which are all replaced by `for_others`.
          for_others: the replacement of `others`.
        """
        super().__init__()
        # Sequence 0 means "unchanged"; it has length 1.
        sequence_index = np.zeros(max(sys.maxunicode, *table, 0) + 1, np.int32)
        sequence_index[list(table)] = np.arange(2, len(table) + 2)
        sequence_index[np.asarray(others, np.int32)] = 1
        sequences = [for_others, *table.values()]
        lengths = np.array([1, *map(len, sequences)], np.int32)
        self._lookup = PagedTable(sequence_index)
        self._lengths = tf.constant(lengths)
        self._starts = tf.constant(np.cumsum(lengths) - lengths, tf.int32)
        self._values = tf.constant([0, *itertools.chain(*sequences)], tf.int32)

    def __call__(self, ragged: tf.RaggedTensor) -> tf.RaggedTensor:
        return self.with_source(ragged)[0]

    def with_source(self, ragged: tf.RaggedTensor) -> tuple[tf.RaggedTensor, tf.Tensor]:
        """Replaces the integers and returns where each result comes from.

        Args:
          ragged: int32 [B, (number of integers)].

        Returns:
          expanded: int32 ragged tensor of the replacements.
          source: int32 [number of results], index into `ragged.values` of each result's source.
        """
        sequence = self._lookup(ragged.values)
        lengths = tf.gather(self._lengths, sequence)
        new_splits = tf.gather(tf.concat([[0], tf.cumsum(lengths)], 0), ragged.row_splits)
        source, place = ranges(lengths)
        sequence = tf.gather(sequence, source)
        expanded = tf.gather(self._values, tf.gather(self._starts, sequence) + place)
        values = tf.where(sequence == 0, tf.gather(ragged.values, source), expanded)
        expanded = tf.RaggedTensor.from_row_splits(
            values, tf.cast(new_splits, ragged.row_splits.dtype), validate=False
        )
        return expanded, source


def _with_final_sigma(code_points: tf.RaggedTensor, case_class: tf.Tensor) -> tf.RaggedTensor:
    """Lower-cases Σ to ς at the end of a word, else to σ (Unicode, section 3.13, Final_Sigma).

    Σ is final if it is preceded but not followed by a cased character, skipping case-ignorable
    characters such as apostrophes.
    """
    counted = tf.cast(tf.where(case_class != _IGNORABLE)[:, 0], tf.int32)
    row = tf.gather(tf.cast(code_points.value_rowids(), tf.int32), counted)
    cased = tf.gather(case_class, counted) == _CASED
    same_row = row[:-1] == row[1:]
    after_cased = tf.concat([[False], same_row & cased[:-1]], 0)[: tf.size(row)]
    before_cased = tf.concat([same_row & cased[1:], [False]], 0)[: tf.size(row)]
    is_sigma = tf.gather(code_points.values, counted) == ord("Σ")
    lower = tf.where(after_cased & ~before_cased, ord("ς"), ord("σ"))
    place = tf.boolean_mask(counted, is_sigma)[:, tf.newaxis]
    values = tf.tensor_scatter_nd_update(
        code_points.values, place, tf.boolean_mask(lower, is_sigma)
    )
    return code_points.with_values(values)


def _rewritten(text: tf.Tensor, replacements: Rules) -> tf.Tensor:
    """The texts with the marks of added tokens; see `added_tokens.marked`."""
    for pattern, replacement in replacements:
        text = tf.strings.regex_replace(text, pattern, replacement)
    return text


def _folds(characters: Sequence[str], lowercase: bool, keep_accents: bool) -> dict[int, list[int]]:
    """{code point: its normalization} for code points that change; Σ is handled separately."""
    # Whitespace is already normalized to spaces.
    characters = [c for c in characters if not c.isspace()]
    folded = clean(_SEPARATOR.join(characters), lowercase=False, keep_accents=keep_accents)
    if lowercase:
        folded = "Σ".join(part.lower() for part in folded.split("Σ"))
    return {
        ord(character): [ord(c) for c in fold]
        for character, fold in zip(characters, folded.split(_SEPARATOR), strict=True)
        if fold != character
    }


def _case_classes(characters: Sequence[str]) -> np.ndarray:
    """Final_Sigma class of each code point, derived from Python's `str.lower`."""
    after = _SEPARATOR.join(f"AΣ{c}" for c in characters).lower().split(_SEPARATOR)
    between = _SEPARATOR.join(f"AΣ{c}A" for c in characters).lower().split(_SEPARATOR)
    case_classes = np.full(sys.maxunicode + 1, _OTHER, np.int32)
    for character, a, b in zip(characters, after, between, strict=True):
        if a[1] == "σ":
            case_classes[ord(character)] = _CASED
        elif b[1] == "σ":
            case_classes[ord(character)] = _IGNORABLE
    return case_classes
