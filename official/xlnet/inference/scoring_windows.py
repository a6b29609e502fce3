"""Windows in which a text is scored: factorization orders, and masked tokens for denoising."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.inference.language_model import bucket, window_length
from official.xlnet.inference.text_parts import GIVEN, HIDDEN, TARGET, TextParts
from official.xlnet.modeling.ops.keras import keras
from official.xlnet.tokenization.special_tokens import EOD_ID, MASK_ID, PAD_ID

# A text in an order: a random number for each token, or None from left to right.
Row = tuple[TextParts, np.ndarray | None]
_MANY = 1 << 20
# Rows of a batch times their length: bounds the memory of the logits.
_TOKENS_PER_BATCH = 2048
_SHORT, _SHORT_BUCKET = 64, 8  # Lengths up to the first are multiples of the second.


@dataclasses.dataclass(frozen=True)
class Window:
    """A window of a text: tokens [start, start + length); tokens [new, end) are scored.

    Attributes:
      start: its first token.
      length: its static length.
      new: the first token that no earlier window has scored.
    """

    start: int
    length: int
    new: int

    @property
    def end(self) -> int:
        """The token after its last one."""
        return self.start + self.length

    @property
    def num_known(self) -> int:
        """Number of its tokens that an earlier window has scored."""
        return self.new - self.start

    def batch_size(self, num_rows: int) -> int:
        """Static number of rows of a batch for `num_rows` rows or a part of them."""
        few = bucket(num_rows) if num_rows > 1 else 1  # Single lines of a pipe are not padded.
        return min(max(1, _TOKENS_PER_BATCH // self.length), few)

    def ranks(self, parts: TextParts, uniform: np.ndarray | None) -> np.ndarray:
        """Ranks [new tokens] in the factorization order: given, then targets, then hidden.

        Args:
          parts: the text.
          uniform: a random number for each token, which orders tokens of one role; None: from left
            to right.
        """
        role = parts.role[self.new : self.end]
        position = np.arange(len(role)) if uniform is None else uniform[self.new : self.end]
        ranks = np.empty(len(role), np.int32)
        ranks[np.lexsort((position[: len(role)], role))] = np.arange(len(role))
        return ranks

    def order(self, parts: TextParts, uniform: np.ndarray | None, whole_given: bool) -> np.ndarray:
        """Factorization order, int32 [length]; see `ranks`.

        Args:
          parts: the text.
          uniform: see `ranks`.
          whole_given: whether given tokens attend to each other.
        """
        order, known = np.arange(self.length, dtype=np.int32), self.num_known
        if uniform is not None:
            order[:known] = 0
        ranks, role = self.ranks(parts, uniform), parts.role[self.start : self.end]
        order[known : known + len(ranks)] = known + ranks
        if whole_given:
            order[: len(role)][role == GIVEN] = 0
        return order

    def token_before(self, ids: np.ndarray) -> int:
        """The token before the window; `<eod>` before a text."""
        return int(ids[self.start - 1]) if 0 < self.start <= len(ids) else EOD_ID

    def inputs(
        self, ids: list[np.ndarray], memory: tf.Tensor | None = None
    ) -> dict[str, tf.Tensor]:
        """Inputs of the network: the window of some texts. `memory` may be of one row, for all."""
        parts = [row_ids[self.start : self.end] for row_ids in ids]
        token_ids_BT = keras.utils.pad_sequences(parts, self.length, padding="post", value=PAD_ID)
        is_padding_BT = np.arange(self.length) >= np.array([len(part) for part in parts])[:, None]
        inputs = {"token_ids": tf.constant(token_ids_BT), "is_padding": tf.constant(is_padding_BT)}
        if memory is not None:
            rows = len(ids)
            inputs["memory"] = tf.repeat(memory, rows // memory.shape[1], axis=1)
            inputs["memory_length"] = tf.fill([rows], min(self.start, memory.shape[2]))
        return inputs


def windows_of(config: XLNetConfig, num_tokens: int) -> Iterator[Window]:
    """The windows that a text is read in; see `scoring`.

    Args:
      config: the configuration that the model was pre-trained with.
      num_tokens: number of tokens of the text.
    """
    length = window_length(config)
    advance = config.data.reuse_len or length
    if num_tokens <= length:
        # Sentences differ by few tokens; sentences of one length run together.
        short = -(-max(num_tokens, 1) // _SHORT_BUCKET) * _SHORT_BUCKET
        yield Window(0, min(short if short <= _SHORT else bucket(num_tokens), length), 0)
        return
    yield Window(0, length, 0)
    for start in range(advance, num_tokens - length + advance, advance):
        yield Window(start, length, start - advance + length)


class MaskedToken(NamedTuple):
    """A window of a text in which one token is to be predicted.

    Attributes:
      row: number of the text and its order among the rows.
      position: the token, in the text.
      place: the token, in the window.
      token_ids: int32, at most `length`: the window, with `<mask>` for it and for what follows it
        in the order.
    """

    row: int
    position: int
    place: int
    token_ids: np.ndarray


def masked_batches(
    config: XLNetConfig, rows: list[Row], is_pseudo: bool
) -> Iterator[tuple[Window, list[MaskedToken]]]:
    """Yields batches of windows of one length, one for each target of each row.

    Args:
      config: the configuration that the model was pre-trained with.
      rows: texts, and random numbers for the order of their tokens.
      is_pseudo: whether only the token itself is masked, whatever the order.

    Yields:
      A window of that length at the start of a text, and what stands in it; the texts are read in
      windows, longest first.
    """
    waiting: dict[int, list[MaskedToken]] = {}
    for row in sorted(range(len(rows)), key=lambda row: -len(rows[row][0].ids)):
        parts, uniform = rows[row]
        for window in windows_of(config, len(parts.ids)):
            ranks, role = window.ranks(parts, uniform), parts.role[window.new : window.end]
            first = Window(0, window.length, 0)
            for target in np.flatnonzero(role == TARGET):
                is_masked = role == HIDDEN if is_pseudo else ranks > ranks[target]
                is_masked[target] = True
                place = window.num_known + int(target)
                token_ids = parts.ids[window.start : window.end].copy()
                token_ids[window.num_known :][is_masked] = MASK_ID
                batch = waiting.setdefault(window.length, [])
                batch.append(MaskedToken(row, window.start + place, place, token_ids))
                if len(batch) == first.batch_size(_MANY):
                    yield first, waiting.pop(window.length)
    for length, batch in waiting.items():
        yield Window(0, length, 0), batch
