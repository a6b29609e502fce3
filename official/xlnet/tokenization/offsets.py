"""Where the tokens of a text are in it, in characters."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from official.xlnet.tokenization.added_tokens import Rules, marked
from official.xlnet.tokenization.special_tokens import WORD_START
from official.xlnet.tokenization.text_alignment import clean_with_alignment, realigned


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
