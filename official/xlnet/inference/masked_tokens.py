"""The chain rule for a denoising model: a row for each token, in which it is masked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.inference.scoring_windows import Row, Window, windows_of
from official.xlnet.inference.text_parts import HIDDEN, TARGET
from official.xlnet.tokenization.special_tokens import MASK_ID

_MANY = 1 << 20


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
            for number in np.flatnonzero(role == TARGET):
                is_masked = role == HIDDEN if is_pseudo else ranks > ranks[number]
                is_masked[number] = True
                place = window.num_known + int(number)
                token_ids = parts.ids[window.start : window.end].copy()
                token_ids[window.num_known :][is_masked] = MASK_ID
                batch = waiting.setdefault(window.length, [])
                batch.append(MaskedToken(row, window.start + place, place, token_ids))
                if len(batch) == first.batch_size(_MANY):
                    yield first, waiting.pop(window.length)
    for length, batch in waiting.items():
        yield Window(0, length, 0), batch
