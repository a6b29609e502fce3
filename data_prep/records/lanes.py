"""How a split's tokens become lanes of equally many windows.

The stream of a split is the text of its documents one after the other, N tokens. With F forward
lanes of W windows each that advance by r = reuse_len,

    W = floor(N / (F r)),    forward lane k's reuse parts = tokens [k W r, (k+1) W r)

so fewer than F r tokens at the stream's end are in no reuse part (they are counted as dropped),
and a document that a lane's end cuts goes on in the next lane. With bidirectional data, lane 2k
is forward lane k and lane 2k+1 the same tokens in reverse; otherwise lane k is forward lane k.

A and B of a lane's last windows lie beyond its reuse parts: they come from the neighbouring lane,
and the stream's end and start are neighbours, too.
"""

from __future__ import annotations

import dataclasses

from data_prep.records.splits import HELDOUT, SPLIT_NAMES, SplitTokens
from data_prep.settings import Settings
from official.xlnet.errors import DataError


@dataclasses.dataclass(frozen=True)
class Layout:
    """The lanes of a split.

    Attributes:
      split: its documents.
      num_lanes: number of lanes, both directions.
      windows_per_lane: W.
      dropped_tokens: tokens in no forward lane.
    """

    split: SplitTokens
    num_lanes: int
    windows_per_lane: int
    dropped_tokens: int

    @property
    def name(self) -> str:
        """`train` or `heldout`."""
        return SPLIT_NAMES[self.split.code]


@dataclasses.dataclass(frozen=True)
class Lane:
    """One lane.

    Attributes:
      layout: the lanes of its split.
      index: its number among them.
      start: first token of its reuse parts in the stream (of those in reading order if it is
        a forward lane; a reversed lane starts with the last).
      is_reversed: whether it is read backwards.
    """

    layout: Layout
    index: int
    start: int
    is_reversed: bool


def lay_out(split: SplitTokens, settings: Settings) -> Layout:
    """Chooses the number of lanes and windows of a split.

    Training text gets `num_lanes` lanes; held-out text, or a small corpus if the user allows it,
    as many as it can fill.

    Raises:
      DataError: there is not enough text.
    """
    directions, advance = settings.directions, settings.reuse_len
    wanted = settings.num_lanes // directions
    least = settings.seq_len - 3  # The text of one window.
    possible = min(wanted, split.tokens // advance) if split.tokens >= least else 0
    if (
        possible < wanted
        and split.code != HELDOUT
        and not (settings.allow_fewer_lanes and possible)
    ):
        needed = least if settings.allow_fewer_lanes else max(least, wanted * advance)
        advice = (
            "; --allow_fewer_lanes makes fewer lanes"
            if possible
            else "; add text or shorten seq_len"
        )
        raise DataError(
            f"not enough text: {split.tokens} tokens in {split.documents} documents are left to "
            f"train on, and {needed} are needed for one window of {settings.seq_len} tokens in "
            f"each of {settings.num_lanes if not settings.allow_fewer_lanes else directions} lanes"
            f"{advice}"
        )
    windows = split.tokens // (possible * advance)
    return Layout(
        split=split,
        num_lanes=possible * directions,
        windows_per_lane=windows,
        dropped_tokens=split.tokens - possible * windows * advance,
    )


def lanes_of(layout: Layout, settings: Settings) -> list[Lane]:
    """All lanes of a split."""
    length = layout.windows_per_lane * settings.reuse_len
    return [
        Lane(
            layout,
            index,
            start=index // settings.directions * length,
            is_reversed=settings.bidirectional and index % 2 == 1,
        )
        for index in range(layout.num_lanes)
    ]
