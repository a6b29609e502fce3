"""Deduplication, the held-out split, and reading the token stream of a split.

Both are based on a fingerprint of each document (a hash of its tokens). They depend only on the
text, not on the number of workers, and duplicates of a document are never in different splits.
Memory is bounded: tables are read shard by shard, and one byte is kept per document.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator

import numpy as np

from data_prep.records.token_files import read_document_table, sentence_end_bit, token_path
from data_prep.settings import Settings
from official.xlnet.files import file_system
from official.xlnet.files.atomic import atomic_write

TRAIN, HELDOUT, DUPLICATE = range(3)
SPLIT_NAMES = ("train", "heldout")
_DOCUMENTS_PER_BUCKET = 8_000_000  # For finding duplicates with bounded memory.
_HASH_BITS, _BIN_BITS = 64, 16  # Hashes are binned by their highest bits.


@dataclasses.dataclass(frozen=True)
class SplitTokens:
    """Sizes of a split.

    Attributes:
      code: `TRAIN` or `HELDOUT`.
      documents: number of documents.
      shard_tokens: number of tokens of the split in each shard.
    """

    code: int
    documents: int
    shard_tokens: list[int]

    @property
    def tokens(self) -> int:
        """Number of tokens, including EOD."""
        return sum(self.shard_tokens)


def split_documents(
    work_dir: str, num_shards: int, settings: Settings
) -> tuple[list[SplitTokens], int]:
    """Assigns every document to a split, and writes the assignment to the work directory.

    The documents with the lowest hash of (seed, text) are held out: a fraction of
    `heldout_fraction`, at least one document but not all. If the held-out text is too short for
    a window, it is returned to the training split.

    Args:
      work_dir: directory of the token files.
      num_shards: number of shards.
      settings: settings of the preparation; uses `heldout_fraction`, `seed`, `drop_duplicates`
        and `seq_len`.

    Returns:
      splits: `train` and, if there is held-out text, `heldout`.
      duplicates: number of dropped duplicates.
    """
    is_duplicate = [
        np.zeros(len(read_document_table(work_dir, shard)), bool) for shard in range(num_shards)
    ]
    if settings.drop_duplicates:
        _find_duplicates(work_dir, is_duplicate)
    highest = _highest_heldout_hash(work_dir, is_duplicate, settings)
    splits = _assign(work_dir, is_duplicate, settings, highest)
    if highest is not None and splits[HELDOUT].tokens < settings.seq_len - 3:
        splits = _assign(work_dir, is_duplicate, settings, None)
    num_duplicates = int(sum(map(np.count_nonzero, is_duplicate)))
    return [split for split in splits if split.code == TRAIN or split.documents], num_duplicates


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
        self._code = split.code
        self._dtype = dtype
        self._shard_end = np.cumsum(split.shard_tokens)
        self._cached: tuple[int, np.ndarray, np.ndarray] | None = None
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
        return tokens & (bit - 1), (tokens & bit) != 0

    def _parts(self, start: int, stop: int) -> Iterator[np.ndarray]:
        shard = int(np.searchsorted(self._shard_end, start, side="right"))
        while start < stop:
            shard_start = int(self._shard_end[shard - 1]) if shard else 0
            until = min(stop, int(self._shard_end[shard]))
            if start < until:
                yield from self._read_shard(shard, start - shard_start, until - shard_start)
                start = until
            shard += 1

    def _read_shard(self, shard: int, start: int, stop: int) -> Iterator[np.ndarray]:
        """Reads tokens [start, stop) of the split's documents in a shard."""
        if self._cached is None or self._cached[0] != shard:
            self._cached = (shard, *self._runs(shard))
        _, file_start, stream_end = self._cached
        size = self._dtype.itemsize
        run = int(np.searchsorted(stream_end, start, side="right"))
        with file_system.open(token_path(self._work_dir, shard), "rb", buffering=0) as file:
            while start < stop:
                run_start = int(stream_end[run - 1]) if run else 0
                until = min(stop, int(stream_end[run]))
                offset = int(file_start[run]) + start - run_start
                file.seek(offset * size)
                yield np.frombuffer(file.read((until - start) * size), self._dtype)
                start = until
                run += 1

    def _runs(self, shard: int) -> tuple[np.ndarray, np.ndarray]:
        """Finds runs of consecutive documents of the split in the token file of a shard.

        Returns:
          file_start: int64 [runs], start of each run in the file.
          stream_end: int64 [runs], end of each run among the split's tokens in the shard.
        """
        length = read_document_table(self._work_dir, shard)["length"].astype(np.int64)
        file_end = np.cumsum(length)
        chosen = _read_codes(self._work_dir, shard) == self._code
        start, end = (file_end - length)[chosen], file_end[chosen]
        is_first = np.append(True, start[1:] != end[:-1])[: len(start)]
        is_last = np.roll(is_first, -1)
        return start[is_first], np.cumsum(length[chosen])[is_last]


def _find_duplicates(work_dir: str, is_duplicate: list[np.ndarray]) -> None:
    """Marks documents with the fingerprint of an earlier one, in buckets to bound memory."""
    num_documents = sum(map(len, is_duplicate))
    num_buckets = -(-num_documents // _DOCUMENTS_PER_BUCKET)
    first_of = np.cumsum([0, *map(len, is_duplicate)])
    for bucket in range(num_buckets):
        fingerprints, places = [], []
        for shard in range(len(is_duplicate)):
            fingerprint = read_document_table(work_dir, shard)["fingerprint"]
            index = np.flatnonzero(fingerprint % np.uint64(num_buckets) == bucket)
            fingerprints.append(fingerprint[index])
            places.append(first_of[shard] + index)
        place = np.concatenate(places)
        _, first = np.unique(np.concatenate(fingerprints), return_index=True)
        repeated = np.ones(len(place), bool)
        repeated[first] = False
        for shard, marks in enumerate(is_duplicate):
            low, high = np.searchsorted(place, first_of[shard : shard + 2])
            marks[place[low:high][repeated[low:high]] - first_of[shard]] = True


def _highest_heldout_hash(
    work_dir: str, is_duplicate: list[np.ndarray], settings: Settings
) -> int | None:
    """Returns the highest hash of held-out documents, or None if no document is held out."""
    counts = np.zeros(1 << _BIN_BITS, np.int64)
    for hashes in _kept_hashes(work_dir, is_duplicate, settings):
        counts += np.bincount(_bin_of(hashes), minlength=1 << _BIN_BITS)
    num_documents = int(counts.sum())
    if not settings.heldout_fraction or num_documents < 2:
        return None
    number = min(max(1, round(settings.heldout_fraction * num_documents)), num_documents - 1)
    # The bin that contains the number-th lowest hash.
    reached = np.cumsum(counts)
    chosen = int(np.searchsorted(reached, number))
    within = np.sort(
        np.concatenate(
            [
                hashes[_bin_of(hashes) == chosen]
                for hashes in _kept_hashes(work_dir, is_duplicate, settings)
            ]
        )
    )
    highest = int(within[number - 1 - (reached[chosen] - counts[chosen])])
    if reached[chosen] == num_documents and int(within[-1]) == highest:
        # Duplicates have to be in the same split, and the training split must not be empty.
        return highest - 1 if highest else None
    return highest


def _kept_hashes(
    work_dir: str, is_duplicate: list[np.ndarray], settings: Settings
) -> Iterator[np.ndarray]:
    for shard, marks in enumerate(is_duplicate):
        yield _hashes(work_dir, shard, settings.seed)[~marks]


def _assign(
    work_dir: str, is_duplicate: list[np.ndarray], settings: Settings, highest: int | None
) -> list[SplitTokens]:
    documents = [0, 0]
    tokens: list[list[int]] = [[], []]
    for shard, marks in enumerate(is_duplicate):
        codes = np.full(len(marks), TRAIN, np.uint8)
        if highest is not None:
            codes[_hashes(work_dir, shard, settings.seed) <= np.uint64(highest)] = HELDOUT
        codes[marks] = DUPLICATE
        with atomic_write(_codes_path(work_dir, shard), work_dir) as file:
            file.write(codes.tobytes())
        length = read_document_table(work_dir, shard)["length"]
        for code in (TRAIN, HELDOUT):
            documents[code] += int(np.count_nonzero(codes == code))
            tokens[code].append(int(length[codes == code].sum(dtype=np.int64)))
    return [SplitTokens(code, documents[code], tokens[code]) for code in (TRAIN, HELDOUT)]


def _bin_of(hashes: np.ndarray) -> np.ndarray:
    """The highest `_BIN_BITS` bits of hashes, as the int64 that `np.bincount` of NumPy 1 needs."""
    return (hashes >> np.uint64(_HASH_BITS - _BIN_BITS)).astype(np.int64)


def _hashes(work_dir: str, shard: int, seed: int) -> np.ndarray:
    """Hash of (seed, fingerprint) of each document in a shard, uint64 (SplitMix64)."""
    x = read_document_table(work_dir, shard)["fingerprint"]
    x = x + np.uint64((seed * 0x9E3779B97F4A7C15) % (1 << 64))
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _codes_path(work_dir: str, shard: int) -> str:
    return os.path.join(work_dir, f"{shard:06d}.split")


def _read_codes(work_dir: str, shard: int) -> np.ndarray:
    return np.frombuffer(file_system.read_bytes(_codes_path(work_dir, shard)), np.uint8)
