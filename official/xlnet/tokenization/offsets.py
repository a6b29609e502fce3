"""Where the tokens of a text are in it, in characters."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from official.xlnet.files.json_files import replace_lone_surrogates
from official.xlnet.tokenization.added_tokens import Rules, marked
from official.xlnet.tokenization.special_tokens import WORD_START
from official.xlnet.tokenization.text_cleaning import clean, fold


@dataclasses.dataclass(frozen=True)
class OffsetEncoder:
    """Tokenizes texts and returns the offsets of the tokens; see `Tokenizer.encode_with_offsets`.

    Attributes:
      processor: the SentencePiece processor.
      marks: see `Tokenizer.marks`.
      cleaning: arguments of `clean`.
      splits: see `Tokenizer.splits`.
      parts: {id of a piece: pieces that replace it}, as `splits`.
      bytes_of_pieces: int64 [V], the byte that a piece stands for; -1 for other pieces.
      continues_character: bool [V], whether a piece is a byte after the first one of a character.
    """

    processor: Any
    marks: tuple[Rules, Rules]
    cleaning: tuple[bool, ...]
    splits: Mapping[int, Sequence[int]]
    parts: Mapping[int, Sequence[str]]
    bytes_of_pieces: np.ndarray
    continues_character: np.ndarray

    def encode(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """Returns token ids, and start and end of each token in a text."""
        cleaned, source_start, source_end = self._clean(text)
        mapping = self.processor.encode(cleaned, return_type="offset_mapping", return_bytes=False)
        normalized, offsets = self.processor.normalize(cleaned, with_offsets=True)
        # Several characters may have the same source (`ﬁ`); each ends where the next source begins.
        following = np.minimum(np.searchsorted(offsets, offsets, side="right"), len(offsets) - 1)
        visible = [
            (offsets[k], offsets[following[k]])
            for k, character in enumerate(normalized)
            if character != WORD_START
        ]
        starts, ends = [*source_start.tolist(), len(text)], source_end.tolist()

        tokens = [
            part
            for i, piece in zip(mapping["ids"], mapping["pieces"], strict=True)
            for part in zip(self.splits.get(i, (i,)), self.parts.get(i, (piece,)), strict=True)
        ]
        spans: list[tuple[int, int]] = []
        first = 0  # Index in `visible` of the next piece's first character.
        ids = [i for i, _ in tokens]
        for k, (i, piece) in enumerate(tokens):
            if self.continues_character[i]:
                spans.append(spans[-1])
                continue
            if self.bytes_of_pieces[i] >= 0:
                # The bytes of `▁`, in a vocabulary of words, are not visible.
                piece_bytes = self.bytes_of_pieces[ids[k : k + 3]].tolist()
                num_visible = int(piece_bytes != [*WORD_START.encode()])
            else:
                num_visible = len(piece) - piece.count(WORD_START)
            last = first + num_visible
            start = end = visible[first][0] if first < len(visible) else len(cleaned)
            if last > first:
                end = visible[last - 1][1]
                while end > start + 1 and cleaned[end - 1] == " ":
                    end -= 1
            spans.append((starts[start], ends[end - 1] if last > first else starts[start]))
            first = last
        return ids, spans

    def _clean(self, text: str) -> tuple[str, np.ndarray, np.ndarray]:
        """`clean`, and start and end in `text` of each character; see `clean_with_alignment`."""
        before, after = self.marks
        if not after:
            return clean_with_alignment(text, *self.cleaning)
        marked_text, place = marked(text, before), np.arange(len(text) + 1)
        first, last = realigned(text, marked_text, place, place[1:])
        cleaned, start, end = clean_with_alignment(marked_text, *self.cleaning)
        starts, ends = np.append(first[start], len(text)), last[end - 1]
        with_marks = marked(cleaned, after)
        return with_marks, *realigned(cleaned, with_marks, starts, ends)


def clean_with_alignment(
    text: str,
    lowercase: bool = False,
    keep_accents: bool = False,
    keep_whitespace: bool = False,
) -> tuple[str, np.ndarray, np.ndarray]:
    r"""Normalizes text and aligns each normalized character to its source.

    Args:
      text: see `clean`.
      lowercase: see `clean`.
      keep_accents: see `clean`.
      keep_whitespace: see `clean`.

    Returns:
      cleaned: `clean(text, lowercase, keep_accents, keep_whitespace)`.
      start: int64 [len(cleaned)], offset of each character's source in `text`, in code points.
      end: int64 [len(cleaned)], end offset (exclusive). A dropped combining mark belongs to the
        preceding character.

    Example:
      >>> clean_with_alignment("Cafe\u0301  ''")
      ('Cafe "', array([0, 1, 2, 3, 5, 7]), array([1, 2, 3, 5, 7, 9]))
    """
    text = replace_lone_surrogates(text)
    if keep_whitespace:
        sizes = [len(character.lower()) if lowercase else 1 for character in text]
        source = np.repeat(np.arange(len(text)), sizes)
        return clean(text, lowercase, keep_whitespace=True), source, source + 1
    aligned: list[tuple[str, int, int]] = []  # Characters with the start and end of their source.
    gap_start, size = -1, 0  # End of the previous word; characters from the previous source.
    for word in re.finditer(r"\S+", text):
        if gap_start >= 0:
            aligned.append((" ", gap_start, word.start()))
        gap_start = word.end()
        for token in re.finditer("``|''|.", word[0], re.DOTALL):
            start, end = word.start() + token.start(), word.start() + token.end()
            kept = '"' if end - start == 2 else token[0]
            if not (keep_accents or kept.isascii()):
                kept = fold(kept)
            if not kept and aligned and aligned[-1][0] != " ":
                aligned[-size:] = [(c, first, end) for c, first, _ in aligned[-size:]]
                continue
            characters = kept.lower() if lowercase else kept
            aligned += [(character, start, end) for character in characters]
            size = len(characters)
    # Lower-casing sigma depends on the surrounding word.
    characters = "".join(character for character, *_ in aligned)
    cleaned = clean(text, lowercase, keep_accents) if lowercase else characters
    sources = np.array([source for _, *source in aligned], np.int64).reshape(-1, 2)
    return cleaned, sources[:, 0], sources[:, 1]


def realigned(
    old: str, new: str, starts: np.ndarray, ends: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Start and end in the original text of each character of a text with marks.

    Args:
      old: the text without them.
      new: the text with them; they lie between the characters beside them.
      starts: int64 [len(old) + 1], start of each character of `old` and of the end.
      ends: int64 [len(old)].
    """
    sources, last = [], 0
    for character in new:
        if last < len(old) and character == old[last]:
            sources.append((starts[last], ends[last]))
            last += 1
        else:  # A mark: between the end of the character before it and the start of the next.
            sources.append((starts[last], ends[last - 1] if last else 0))
    spans = np.array(sources, np.int64).reshape(-1, 2)
    return spans[:, 0], spans[:, 1]
