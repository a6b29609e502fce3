"""Pass 2: divides the token stream of a split into lanes, and writes each as a record file.

The token stream of a split is the concatenation of its documents, N tokens. With F forward lanes of
W windows and a stride of r = reuse_len,

    W = floor(N / (F r)),    reuse parts of forward lane k = tokens [k W r, (k+1) W r)

Fewer than F r tokens at the end of the stream are in no reuse part; they are counted as dropped. A
document that is split at the end of a lane continues in the next lane. In bidirectional data, lane
2k is forward lane k and lane 2k+1 holds the same tokens reversed; otherwise, lane k is forward lane
k.

The segments A and B of the last windows of a lane extend beyond its reuse parts, into the
neighboring lane; the stream is treated as circular.

A lane is processed in chunks, so memory is bounded. The random segment B of a window comes from the
same chunk (in the XLNet release, from the same input file).
"""

from __future__ import annotations

import dataclasses
import os
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from data_prep.record_settings import Settings
from data_prep.records.records import encode_windows
from data_prep.records.splits import HELDOUT, SPLITS, SplitTokens
from data_prep.records.token_files import HashedFile, run_once, temporary_dir
from data_prep.records.token_stream import TokenStream
from data_prep.records.windows import choose_windows, window_draws
from official.xlnet.data.file_names import lane_file
from official.xlnet.data.record_files.framing import framed
from official.xlnet.errors import DataError
from official.xlnet.files.atomic import atomic_write
from official.xlnet.tokenization.special_tokens import EOD_ID

_CHUNK_TOKENS = 1 << 19
_GZIP = 31  # zlib's `wbits` for maximum window size with gzip header.
_MARGIN_WINDOWS = 8  # Additional text after the last window of a chunk, for random segments.


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


def completion_path(work_dir: str, layout: Layout, lane: int) -> str:
    """Path of the completion record of a lane: a JSON file written last."""
    return os.path.join(work_dir, _file_name(layout, lane) + ".json")


def write_lane(
    layout: Layout,
    lane: int,
    settings: Settings,
    dtype: np.dtype,
    work_dir: str,
    output_dir: str,
    report: Callable[[int], Any],
) -> dict[str, Any]:
    """Writes the record file of a lane, unless it is already complete (by its checksum).

    Args:
      layout: the layout of its split.
      lane: index of the lane in the split.
      settings: settings of the preparation; uses lengths and seed.
      dtype: data type of token files.
      work_dir: directory of the token files.
      output_dir: directory of the record file.
      report: progress callback; called with numbers of windows written, which sum to W.

    Returns:
      The completion record `{"file": name, "sha256": […]}`, plus "resumed": whether the lane had
      been completed before.
    """
    name = _file_name(layout, lane)
    stream = TokenStream(work_dir, layout.split, dtype)
    path = os.path.join(output_dir, name)

    def write() -> dict[str, Any]:
        # The header of gzip has no timestamp, so the output is deterministic.
        compressor = zlib.compressobj(wbits=_GZIP) if settings.compress else None
        with atomic_write(path, temporary_dir(work_dir)) as output:
            file = HashedFile(output)
            for records, num_windows in _chunks(layout, lane, settings, stream):
                data = framed(records)
                file.write(compressor.compress(data) if compressor else data)
                report(num_windows)
            if compressor:
                file.write(compressor.flush())
        return {"file": name, "sha256": [file.sha256]}

    record = completion_path(work_dir, layout, lane)
    return run_once(record, [path], work_dir, write, lambda: report(layout.windows_per_lane))


def _chunks(
    layout: Layout, lane: int, settings: Settings, stream: TokenStream
) -> Iterator[tuple[Iterator[bytes], int]]:
    """Yields the records of each chunk of a lane, and their number."""
    num_windows, advance = layout.windows_per_lane, settings.reuse_len
    pair, direction = divmod(lane, settings.directions)
    num_chunks = -(-num_windows * advance // _CHUNK_TOKENS)
    context_length = 0
    for chunk in range(num_chunks):
        first = chunk * num_windows // num_chunks
        num_chosen = (chunk + 1) * num_windows // num_chunks - first
        needed = num_chosen * advance + settings.span_len
        with_margin = needed + _MARGIN_WINDOWS * settings.seq_len
        text_len = max(needed, min(stream.num_tokens, with_margin))
        begin = (pair * num_windows + first) * advance
        if direction:  # Reversed text is read from the end of the lane.
            begin = ((pair + 1) * num_windows - first) * advance - text_len
        token_ids, sentence_starts, document_starts = _read_text(
            stream, begin, begin + text_len, is_reversed=bool(direction)
        )
        windows, context_length = choose_windows(
            sentence_starts,
            document_starts,
            text_len,
            context_length,
            window_draws(settings.seed, SPLITS.index(layout.split.name), lane, first, num_chosen),
            advance,
            settings.span_len,
        )
        first_id = lane * num_windows + first
        yield encode_windows(token_ids, windows, advance, bool(direction), first_id), num_chosen


def _file_name(layout: Layout, lane: int) -> str:
    return lane_file(layout.split.name, lane, layout.num_lanes)


def _read_text(
    stream: TokenStream, start: int, stop: int, is_reversed: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Reads tokens [start, stop) of a stream in the direction of a lane.

    EOD belongs to the document before it in forward text, so a document in reversed text starts
    with EOD.

    Returns:
      token_ids: [stop - start].
      sentence_starts: int64, positions where sentences start.
      document_starts: int64, positions where documents start.
    """
    token_ids, ends_sentence = stream.read(start, stop)
    if is_reversed:
        token_ids, ends_sentence = token_ids[::-1], ends_sentence[::-1]
    after = 0 if is_reversed else 1
    is_eod = token_ids == EOD_ID
    return token_ids, np.flatnonzero(ends_sentence) + after, np.flatnonzero(is_eod) + after
