"""Deduplication, the held-out split, and reading the token stream of a split.

Both are based on a fingerprint of each document (a hash of its tokens). They depend only on the
text, not on the number of workers, and the tokens of duplicates are never in different splits.
Memory is bounded: tables are read shard by shard, and one byte is kept per document.

A share of the tokens is held out. As long as the documents with the lowest hashes make up about
that share, they are held out. Otherwise some document is too large to be held out or kept whole:
documents of more than half the share are divided, and the end of each is held out.
"""

from __future__ import annotations

import collections
import dataclasses
import math
from collections.abc import Iterator

import numpy as np

from data_prep.corpus.readers import Counts
from data_prep.records.token_files import (
    read_document_table,
    read_tokens,
    sentence_end_bit,
    shard_file,
)
from data_prep.settings import Settings
from official.xlnet.errors import DataError
from official.xlnet.files import file_system
from official.xlnet.files.atomic import write_bytes

TRAIN, HELDOUT = range(2)
SPLIT_NAMES = ("train", "heldout")
_DUPLICATE = (1 << 32) - 1  # In place of the number of tokens of a document to train on.
_TOLERANCE = 0.5  # Deviation of a split from its share, relative to the smaller split.
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
    work_dir: str, num_shards: int, settings: Settings, dtype: np.dtype, num_heldout: int = 0
) -> tuple[list[SplitTokens], Counts]:
    """Assigns every document to a split, and writes the assignment to the work directory.

    The documents with the lowest hash of (seed, text) are held out, `heldout_fraction` of all but
    at least one, unless their tokens are far from that share (see `heldout_range`). Then the share
    is taken in tokens: from documents of more than half of it, the end, which begins with a
    sentence if there is one nearby; of the others, those with the lowest hashes. If no held-out
    text in the range is found, nothing is held out. With `num_heldout`, the documents of the last
    shards are held out instead, and copies of them dropped from training.

    Args:
      work_dir: directory of the token files.
      num_shards: number of shards.
      settings: settings of the preparation; uses `heldout_fraction`, `seed`, `drop_duplicates`
        and `seq_len`.
      dtype: data type of token files.
      num_heldout: number of shards at the end that are held out as a whole; 0 for a share.

    Returns:
      splits: `train` and, if there is held-out text, `heldout`.
      counts: `duplicates`, the number of dropped documents, and `divided_documents`, the number of
        documents of which a part is in each split.
    """
    documents = _Documents(work_dir, num_shards, settings, dtype, num_heldout)
    least, most = heldout_range(documents.tokens, settings)
    rules = documents.rules()
    if num_heldout:
        least, most = settings.tokens_per_window, math.inf
        rules = iter([_Rule(first_shard=num_shards - num_heldout)])
    for rule in rules:
        splits, num_divided = documents.assign(rule)
        if least <= splits[HELDOUT].tokens <= most and splits[TRAIN].tokens:
            break
    else:
        if num_heldout:
            raise DataError(
                f"heldout_input: expected at least a window, {least} tokens, and text to train on, "
                f"got {splits[HELDOUT].tokens} and {splits[TRAIN].tokens} tokens"
            )
        splits, num_divided = documents.assign(_Rule())
    return (
        [split for split in splits if split.code == TRAIN or split.documents],
        Counts(duplicates=documents.duplicates, divided_documents=num_divided),
    )


def heldout_range(num_tokens: int, settings: Settings) -> tuple[float, float]:
    """Least and most tokens of a held-out split: a window, and about the share asked for.

    Args:
      num_tokens: number of tokens of all splits.
      settings: settings of the preparation; uses `heldout_fraction` and `seq_len`.
    """
    share, window = settings.heldout_fraction * num_tokens, settings.tokens_per_window
    deviation = _TOLERANCE * min(share, num_tokens - share)
    return max(share - deviation, window), max(share + deviation, 2 * window)


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
        size = self._dtype.itemsize
        for shard, first, last in _spans(self._shard_end, start, stop):
            if self._cached is None or self._cached[0] != shard:
                self._cached = (shard, *self._runs(shard))
            _, file_start, stream_end = self._cached
            path = shard_file(self._work_dir, shard, "tokens")
            with file_system.open(path, "rb", buffering=0) as file:
                for run, begin, end in _spans(stream_end, first, last):
                    file.seek((int(file_start[run]) + begin) * size)
                    yield np.frombuffer(file.read((end - begin) * size), self._dtype)

    def _runs(self, shard: int) -> tuple[np.ndarray, np.ndarray]:
        """Finds runs of consecutive tokens of the split in the token file of a shard.

        The part of a divided document that is in the training split has the document's EOD, too.

        Returns:
          file_start: int64 [runs], start of each run in the file.
          stream_end: int64 [runs], end of each run among the split's tokens in the shard.
        """
        length = read_document_table(self._work_dir, shard)["length"].astype(np.int64)
        file_end = np.cumsum(length)
        begin, kept = file_end - length, _read_kept(self._work_dir, shard)
        if self._code == TRAIN:
            chosen = (kept > 0) & (kept != _DUPLICATE)
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


@dataclasses.dataclass(frozen=True)
class _Rule:
    """A rule that says which tokens are held out.

    Attributes:
      highest: documents are held out up to this hash; -1 for none.
      longest: those of more tokens are not, whatever their hash.
      pieces: {hash of a document: number of tokens to hold out at its end}.
      first_shard: all documents of this shard and those after it are held out.
    """

    highest: int = -1
    longest: float = math.inf
    pieces: dict[int, int] = dataclasses.field(default_factory=dict)
    first_shard: float = math.inf


class _Documents:
    """The documents of all shards that are not dropped.

    Attributes:
      tokens: their number of tokens.
      duplicates: number of dropped documents.
    """

    def __init__(
        self,
        work_dir: str,
        num_shards: int,
        settings: Settings,
        dtype: np.dtype,
        num_heldout: int,
    ):
        self._work_dir = work_dir
        self._settings = settings
        self._dtype = dtype
        sizes = [len(read_document_table(work_dir, shard)) for shard in range(num_shards)]
        self._first_of = np.cumsum([0, *sizes])
        is_duplicate = np.zeros(self._first_of[-1], bool)
        self._is_duplicate = np.split(is_duplicate, self._first_of[1:-1])
        if settings.drop_duplicates:
            self._mark_duplicates(is_duplicate)
        if num_heldout:
            tables = [
                read_document_table(work_dir, shard)["fingerprint"] for shard in range(num_shards)
            ]
            heldout = np.unique(np.concatenate(tables[-num_heldout:]))
            for marks, table in zip(self._is_duplicate[:-num_heldout], tables, strict=False):
                marks |= np.isin(table, heldout)
        self.duplicates = int(np.count_nonzero(is_duplicate))
        self.tokens = sum(int(length.sum(dtype=np.int64)) for _, length in self._tables())

    def _mark_duplicates(self, is_duplicate: np.ndarray) -> None:
        """Marks documents with the fingerprint of an earlier one, in buckets to bound memory."""
        num_buckets = -(-len(is_duplicate) // _DOCUMENTS_PER_BUCKET)
        for bucket in range(num_buckets):
            fingerprints, places = [], []
            for shard in range(len(self._is_duplicate)):
                fingerprint = read_document_table(self._work_dir, shard)["fingerprint"]
                index = np.flatnonzero(fingerprint % np.uint64(num_buckets) == bucket)
                fingerprints.append(fingerprint[index])
                places.append(self._first_of[shard] + index)
            _, first = np.unique(np.concatenate(fingerprints), return_index=True)
            is_duplicate[np.delete(np.concatenate(places), first)] = True

    def rules(self) -> Iterator[_Rule]:
        """Yields rules for the held-out split, best first."""
        fraction, window = self._settings.heldout_fraction, self._settings.tokens_per_window
        number = sum(len(length) for _, length in self._tables())
        if not fraction or not number:
            return
        highest = self._highest_hash(max(1, round(fraction * number)), in_tokens=False)
        yield _Rule(highest)
        yield _Rule(highest - 1)  # Without the last document and its duplicates.
        share = fraction * self.tokens
        if share < window:
            return
        longest = share / 2
        pieces, share = self._pieces(longest, share)
        highest = self._highest_hash(share, in_tokens=True, longest=longest)
        yield _Rule(highest, longest, pieces)
        yield _Rule(highest - 1, longest, pieces)

    def assign(self, rule: _Rule) -> tuple[list[SplitTokens], int]:
        """Writes how many tokens of each document are trained on; the rest is held out.

        Returns:
          splits: the sizes of both splits.
          num_divided: number of divided documents.
        """
        documents = [0, 0]
        tokens: list[list[int]] = [[], []]
        num_divided = 0
        for shard, marks in enumerate(self._is_duplicate):
            length = read_document_table(self._work_dir, shard)["length"].astype(np.int64)
            hashes, kept = _hashes(self._work_dir, shard, self._settings.seed), length.copy()
            if shard >= rule.first_shard:
                kept[:] = 0
            if rule.highest >= 0:
                kept[(hashes <= np.uint64(rule.highest)) & (length <= rule.longest)] = 0
            divided = np.isin(hashes, np.array([*rule.pieces], np.uint64)) & ~marks
            for index in np.flatnonzero(divided):
                begin = int(length[:index].sum())
                kept[index] = self._cut(
                    shard, begin, int(length[index]), rule.pieces[int(hashes[index])]
                )
            kept[marks] = _DUPLICATE
            path = shard_file(self._work_dir, shard, "split")
            write_bytes(path, kept.astype("<u4").tobytes(), self._work_dir)
            num_divided += int(np.count_nonzero(divided))
            for code, chosen, size in (
                (TRAIN, (kept > 0) & ~marks, kept + divided),
                (HELDOUT, kept < length, length - kept),
            ):
                documents[code] += int(np.count_nonzero(chosen))
                tokens[code].append(int(size[chosen].sum()))
        splits = [SplitTokens(code, documents[code], tokens[code]) for code in (TRAIN, HELDOUT)]
        return splits, num_divided

    def _tables(
        self, longest: float = math.inf, in_tokens: bool = True
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yields the hashes and sizes of the documents of each shard that are not too long.

        Args:
          longest: documents of more tokens are left out.
          in_tokens: whether the size is the number of tokens; else it is 1.
        """
        for shard, marks in enumerate(self._is_duplicate):
            length = read_document_table(self._work_dir, shard)["length"]
            chosen = ~marks & (length <= longest)
            size = length if in_tokens else np.ones_like(length)
            yield _hashes(self._work_dir, shard, self._settings.seed)[chosen], size[chosen]

    def _highest_hash(self, share: float, in_tokens: bool, longest: float = math.inf) -> int:
        """The highest hash among the documents with the lowest hashes that make up a share.

        Args:
          share: number of documents or tokens to reach.
          in_tokens: which of both.
          longest: documents of more tokens are left out.

        Returns:
          The hash; -1 if no document is chosen.
        """
        counts = np.zeros(1 << _BIN_BITS, np.int64)
        for hashes, sizes in self._tables(longest, in_tokens):
            counts += np.bincount(_bin_of(hashes), sizes, 1 << _BIN_BITS).astype(np.int64)
        reached = np.cumsum(counts)
        if not 0 < share <= reached[-1]:
            return -1
        # The bin that contains the last document.
        chosen = int(np.searchsorted(reached, share))
        within = [
            np.stack(table)[:, _bin_of(table[0]) == chosen]
            for table in self._tables(longest, in_tokens)
        ]
        hashes, sizes = np.concatenate(within, axis=1)
        order = np.argsort(hashes, kind="stable")
        total = reached[chosen] - counts[chosen] + np.cumsum(sizes[order].astype(np.int64))
        return int(hashes[order][np.searchsorted(total, share)])

    def _pieces(self, longest: float, share: float) -> tuple[dict[int, int], float]:
        """The tokens to hold out of each document that is too long to be held out whole.

        Each gives the held-out fraction of its tokens, or if that is less than a window, only one
        of several gives what they have to give together.

        Args:
          longest: the most tokens of a document that may be held out whole.
          share: number of tokens to hold out.

        Returns:
          pieces: see `_Rule`.
          rest: number of tokens that other documents have to give.
        """
        fraction, window = self._settings.heldout_fraction, self._settings.tokens_per_window
        times: collections.Counter[tuple[int, int]] = collections.Counter()
        for hashes, length in self._tables():
            is_long = length > longest
            times.update(zip(hashes[is_long].tolist(), length[is_long].tolist(), strict=True))
        pieces, wanted, given = {}, 0.0, 0
        for (key, tokens), number in sorted(times.items()):
            wanted += fraction * tokens * number
            piece = min(round(wanted / number), tokens - window)
            if piece >= window:
                pieces[key] = piece
                wanted -= piece * number
                given += piece * number
        return pieces, share - given

    def _cut(self, shard: int, begin: int, length: int, piece: int) -> int:
        """Number of tokens of a document before its held-out end of about `piece` tokens.

        The end begins with a sentence, the one nearest to where a piece of that length begins, but
        is not more than half as long again.
        """
        middle, reach = length - piece, max(1, min(piece, length - piece) // 2)
        tokens = read_tokens(
            self._work_dir, shard, self._dtype, begin + middle - reach, begin + middle + reach
        )
        ends = np.flatnonzero(tokens & sentence_end_bit(self._dtype)) + 1 - reach
        return middle + (int(ends[np.argmin(np.abs(ends))]) if len(ends) else 0)


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


def _read_kept(work_dir: str, shard: int) -> np.ndarray:
    """Number of tokens of each document to train on, int64; `_DUPLICATE` if it is dropped."""
    kept = np.frombuffer(file_system.read_bytes(shard_file(work_dir, shard, "split")), "<u4")
    return kept.astype(np.int64)
