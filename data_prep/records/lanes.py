"""Division of a split's token stream into lanes with equal numbers of windows.

The token stream of a split is the concatenation of its documents, N tokens. With F forward lanes of
W windows and a stride of r = reuse_len,

    W = floor(N / (F r)),    reuse parts of forward lane k = tokens [k W r, (k+1) W r)

Fewer than F r tokens at the end of the stream are in no reuse part; they are counted as dropped. A
document that is split at the end of a lane continues in the next lane. In bidirectional data, lane
2k is forward lane k and lane 2k+1 holds the same tokens reversed; otherwise, lane k is forward lane
k.

The segments A and B of the last windows of a lane extend beyond its reuse parts, into the
neighboring lane; the stream is treated as circular.
"""

from __future__ import annotations

import dataclasses

from data_prep.records.splits import HELDOUT, SplitTokens
from data_prep.settings import Settings
from official.xlnet.errors import DataError


@dataclasses.dataclass(frozen=True)
class Layout:
    """Division of a split into lanes.

    Attributes:
      split: the split.
      num_lanes: number of lanes, in both directions.
      windows_per_lane: number of windows per lane, W.
      dropped_tokens: number of tokens that are in no reuse part.
    """

    split: SplitTokens
    num_lanes: int
    windows_per_lane: int
    dropped_tokens: int


def lay_out(split: SplitTokens, settings: Settings) -> Layout:
    """Computes the numbers of lanes and windows of a split.

    The training split has `num_lanes` lanes. The held-out split, or a small corpus with
    `allow_fewer_lanes`, has as many lanes as it can fill, up to that number.

    Args:
      split: the split.
      settings: settings of the preparation.

    Returns:
      The layout.

    Raises:
      DataError: there is not enough text.
    """
    directions, advance = settings.directions, settings.reuse_len
    wanted = settings.num_lanes // directions
    least = settings.tokens_per_window
    possible = min(wanted, split.tokens // advance) if split.tokens >= least else 0
    if (
        possible < wanted
        and split.name != HELDOUT
        and not (settings.allow_fewer_lanes and possible)
    ):
        needed = least if settings.allow_fewer_lanes else max(least, wanted * advance)
        advice = (
            "; --allow_fewer_lanes reduces the number of lanes"
            if possible
            else "; add text or reduce seq_len"
        )
        raise DataError(
            f"not enough text: {split.tokens} tokens in {split.documents} documents are available "
            f"for training, but {needed} are needed for one window of {settings.seq_len} tokens in "
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
