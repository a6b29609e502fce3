"""Pass 2: a lane of the token stream as a file of records.

A lane is written in stretches of text, so memory is bounded. B of windows with `is_next` 0 comes
from the same stretch, as it came from the same input file in the XLNet release.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from data_prep.atomic import atomic_write, read_json, sha256_of, write_json
from data_prep.records.lanes import Lane
from data_prep.records.records import RecordWriter, encode_windows
from data_prep.records.splits import TokenStream
from data_prep.records.windows import choose_windows, window_draws
from data_prep.settings import Settings
from official.xlnet.data.schema import lane_file
from official.xlnet.tokenization.special_tokens import EOD_ID

_STRETCH_TOKENS = 1 << 19
_MARGIN_WINDOWS = 8  # Text behind the last window of a stretch, for B from elsewhere.


def note_path(work_dir: str, lane: Lane) -> str:
    """Path of the note that a lane is done."""
    return os.path.join(work_dir, _file_name(lane) + ".json")


def write_lane(
    lane: Lane,
    settings: Settings,
    dtype: np.dtype,
    work_dir: str,
    output_dir: str,
    report: Callable[[int], Any],
) -> dict[str, Any]:
    """Writes the records of one lane.

    A lane that is done already, as its checksum shows, is left alone.

    Args:
      lane: which tokens, in which direction.
      settings: lengths and seed.
      dtype: type of the tokens in token files.
      work_dir: where the token files are.
      output_dir: where the record file goes.
      report: called with numbers of windows written; W in all.

    Returns:
      The note that is left: `{"file": name, "sha256": …}`, with "resumed" to say whether the
      lane was done before.
    """
    path, note_file = os.path.join(output_dir, _file_name(lane)), note_path(work_dir, lane)
    note = read_json(note_file)
    if note is not None and note["sha256"] == sha256_of(path):
        report(lane.layout.windows_per_lane)
        return {**note, "resumed": True}

    stream = TokenStream(work_dir, lane.layout.split, dtype)
    num_windows, advance = lane.layout.windows_per_lane, settings.reuse_len
    num_stretches = -(-num_windows * advance // _STRETCH_TOKENS)
    context_length = 0
    with atomic_write(path, work_dir) as file:
        writer = RecordWriter(file, settings.compress)
        for stretch in range(num_stretches):
            first = stretch * num_windows // num_stretches
            number = (stretch + 1) * num_windows // num_stretches - first
            token_ids, sentence_starts, document_starts = _read_text(
                stream,
                lane,
                first * advance,
                _text_len(number, stream.num_tokens, settings),
                advance,
            )
            windows, context_length = choose_windows(
                sentence_starts,
                document_starts,
                len(token_ids),
                context_length,
                window_draws(settings.seed, lane.layout.split.code, lane.index, first, number),
                advance,
                settings.span_len,
            )
            first_id = lane.index * num_windows + first
            writer.write(encode_windows(token_ids, windows, advance, lane.is_reversed, first_id))
            report(number)
        writer.finish()
    note = {"file": _file_name(lane), "sha256": writer.sha256}
    write_json(note_file, note, work_dir)
    return {**note, "resumed": False}


def _file_name(lane: Lane) -> str:
    return lane_file(lane.layout.name, lane.index, lane.layout.num_lanes)


def _text_len(num_windows: int, num_tokens: int, settings: Settings) -> int:
    """Tokens of a stretch: its windows and some text behind them, if the stream has it."""
    windows = num_windows * settings.reuse_len + settings.span_len
    return max(windows, min(num_tokens, windows + _MARGIN_WINDOWS * settings.seq_len))


def _read_text(
    stream: TokenStream, lane: Lane, first: int, length: int, advance: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Text of a lane in its reading direction, from its token `first` on.

    EOD belongs to the document that it ends, in both directions: reversed text of a document
    begins with it.

    Returns:
      token_ids [length], and the positions where sentences and where documents begin.
    """
    if not lane.is_reversed:
        begin = lane.start + first
        token_ids, ends_sentence = stream.read(begin, begin + length)
        return (
            token_ids,
            np.flatnonzero(ends_sentence) + 1,
            np.flatnonzero(token_ids == EOD_ID) + 1,
        )
    end = lane.start + lane.layout.windows_per_lane * advance - first
    token_ids, ends_sentence = stream.read(end - length, end)
    token_ids, ends_sentence = token_ids[::-1], ends_sentence[::-1]
    return token_ids, np.flatnonzero(ends_sentence), np.flatnonzero(token_ids == EOD_ID)
