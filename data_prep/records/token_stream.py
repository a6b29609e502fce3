"""The tokens of a split, read from the token files as one circular stream."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence

import numpy as np

from data_prep.records.splits import DUPLICATE, TRAIN, SplitTokens
from data_prep.records.token_files import read_document_table, sentence_end_bit, shard_file
from official.xlnet.files import file_system

_MAX_GAP_TOKENS = 1 << 18  # Between tokens that are read by one request from a bucket.


class TokenStream:
    """Circular stream of the tokens of a split: its documents, concatenated.

    Attributes:
      num_tokens: length of the stream, N.
    """

    def __init__(self, work_dir: str, split: SplitTokens, dtype: np.dtype):
        """Creates the stream; files are opened when reading.

        Args:
          work_dir: directory of the token files.
          split: the split to read.
          dtype: data type of token files.
        """
        self._work_dir = work_dir
        self._is_train = split.name == TRAIN
        self._dtype = dtype
        self._shard_end = np.cumsum(split.shard_tokens)
        self._runs_of = functools.lru_cache(maxsize=1)(self._runs)
        self.num_tokens = split.tokens

    def read(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Reads tokens [start, stop) of the stream; positions are taken modulo N.

        Args:
          start: first position; may be negative or above N.
          stop: end position (exclusive).

        Returns:
          ids: `dtype` [stop - start].
          ends_sentence: bool [stop - start], whether a token is the last of its sentence.
        """
        parts: list[np.ndarray] = []
        while start < stop:
            place = start % self.num_tokens
            length = min(stop - start, self.num_tokens - place)
            parts += self._parts(place, place + length)
            start += length
        tokens = np.concatenate(parts)
        bit = sentence_end_bit(self._dtype)
        return tokens & (bit - 1), tokens >= bit

    def _parts(self, start: int, stop: int) -> Iterator[np.ndarray]:
        size = self._dtype.itemsize
        for shard, first, last in _spans(self._shard_end, start, stop):
            file_start, stream_end = self._runs_of(shard)
            path = shard_file(self._work_dir, shard, "tokens")
            # A request takes as long as the bytes of a gap; a read of a disk does not.
            max_gap = _MAX_GAP_TOKENS if file_system.is_remote(path) else 0
            ranges = [
                (int(file_start[run]) + begin, int(file_start[run]) + end)
                for run, begin, end in _spans(stream_end, first, last)
            ]
            with file_system.open(path, "rb", buffering=0) as file:
                for near in _groups(ranges, max_gap):
                    (begin, _), (_, end) = near[0], near[-1]
                    file.seek(begin * size)
                    tokens = np.frombuffer(file.read((end - begin) * size), self._dtype)
                    yield from (tokens[first - begin : last - begin] for first, last in near)

    def _runs(self, shard: int) -> tuple[np.ndarray, np.ndarray]:
        """Finds runs of consecutive tokens of the split in the token file of a shard.

        The part of a divided document that is in the training split has the document's EOD, too.

        Returns:
          file_start: int64 [runs], start of each run in the file.
          stream_end: int64 [runs], end of each run among the split's tokens in the shard.
        """
        length = read_document_table(self._work_dir, shard)["length"].astype(np.int64)
        file_end = np.cumsum(length)
        content = file_system.read_bytes(shard_file(self._work_dir, shard, "split"))
        begin, kept = file_end - length, np.frombuffer(content, "<u4").astype(np.int64)
        if self._is_train:
            chosen = (kept > 0) & (kept != DUPLICATE)
            is_divided = chosen & (kept < length)
            start = np.concatenate([begin[chosen], file_end[is_divided] - 1])
            end = np.concatenate([(begin + kept)[chosen], file_end[is_divided]])
        else:
            chosen = kept < length
            start, end = (begin + kept)[chosen], file_end[chosen]
        start, end = np.sort(start), np.sort(end)
        is_first = np.append(True, start[1:] != end[:-1])[: len(start)]
        is_last = np.roll(is_first, -1)
        return start[is_first], np.cumsum(end - start)[is_last]


def _groups(ranges: Sequence[tuple[int, int]], max_gap: int) -> list[list[tuple[int, int]]]:
    """Groups ascending ranges (start, stop) between which there are at most `max_gap` positions."""
    groups: list[list[tuple[int, int]]] = []
    for start, stop in ranges:
        if groups and start - groups[-1][-1][1] <= max_gap:
            groups[-1].append((start, stop))
        else:
            groups.append([(start, stop)])
    return groups


def _spans(ends: np.ndarray, start: int, stop: int) -> Iterator[tuple[int, int, int]]:
    """Yields which parts [start, stop) of a sequence of segments covers: segment, start, stop.

    Args:
      ends: int64, end of each segment in the sequence.
      start: first position in the sequence.
      stop: end position (exclusive).
    """
    begins = np.append(0, ends[:-1])
    first, last = np.searchsorted(ends, [start, stop - 1], side="right")
    for segment in np.flatnonzero(ends[first : last + 1] > begins[first : last + 1]) + first:
        begin, end = int(begins[segment]), int(ends[segment])
        yield int(segment), max(start, begin) - begin, min(stop, end) - begin
