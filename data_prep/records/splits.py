"""Deduplication and the held-out split.

Both are based on a fingerprint of each document (a hash of its tokens). They depend only on the
text, not on the number of workers, and the tokens of duplicates are never in different splits.
Some 32 bytes are needed in memory per document.

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

from data_prep.corpus.formats import Counts
from data_prep.record_settings import Settings
from data_prep.records.token_files import (
    read_document_table,
    read_tokens,
    sentence_end_bit,
    shard_file,
)
from official.xlnet.errors import DataError
from official.xlnet.files.atomic import write_bytes

TRAIN, HELDOUT = SPLITS = ("train", "heldout")
DUPLICATE = (1 << 32) - 1  # In place of the number of tokens of a document to train on.
_TOLERANCE = 0.5  # Deviation of a split from its share, relative to the smaller split.


@dataclasses.dataclass(frozen=True)
class SplitTokens:
    """Sizes of a split.

    Attributes:
      name: `train` or `heldout`.
      documents: number of documents.
      shard_tokens: number of tokens of the split in each shard.
    """

    name: str
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
        documents with a part in each split.
    """
    tables = [read_document_table(work_dir, shard) for shard in range(num_shards)]
    starts = np.cumsum([0, *map(len, tables)])
    length_N = np.concatenate([table["length"] for table in tables])
    hash_N = np.concatenate([_hashes(table["fingerprint"], settings.seed) for table in tables])
    del tables
    num_inputs = int(starts[num_shards - num_heldout])
    is_dropped_N = _copies(hash_N, num_inputs, settings.drop_duplicates)
    length_N[is_dropped_N] = 0
    least, most = heldout_range(int(length_N.sum()), settings)
    choices = _choices(hash_N, length_N, settings)
    if num_heldout:
        least, most = settings.tokens_per_window, math.inf
        choices = iter([(np.arange(len(hash_N)) >= num_inputs, {})])
    for is_heldout_N, pieces in choices:
        train_N = np.where(is_heldout_N, 0, length_N)
        for n, piece in pieces.items():
            train_N[n] = _cut(work_dir, starts, dtype, n, piece)
        heldout = int((length_N - train_N).sum())
        if least <= heldout <= most and train_N.any():
            break
    else:
        if num_heldout:
            raise DataError(
                f"heldout_input: expected at least a window, {least} tokens, and text to train on, "
                f"got {heldout} and {train_N.sum()} tokens"
            )
        train_N, pieces = length_N, {}
    kept_N = np.where(is_dropped_N, DUPLICATE, train_N).astype("<u4", copy=False)
    for shard, kept in enumerate(np.split(kept_N, starts[1:-1])):
        write_bytes(shard_file(work_dir, shard, "split"), kept.tobytes(), work_dir)
    heldout_N = length_N - train_N
    train_N[[*pieces]] += 1  # Both parts of a divided document have its EOD.
    splits = []
    for name, size_N in ((TRAIN, train_N), (HELDOUT, heldout_N)):
        tokens = [int(part.sum()) for part in np.split(size_N, starts[1:-1])]
        splits.append(SplitTokens(name, int(np.count_nonzero(size_N)), tokens))
    return (
        [split for split in splits if split.name == TRAIN or split.documents],
        Counts({"duplicates": int(is_dropped_N.sum()), "divided_documents": len(pieces)}),
    )


def _copies(hash_N: np.ndarray, num_inputs: int, of_all: bool) -> np.ndarray:
    """Whether a document is dropped as a copy of another one, bool [N].

    Args:
      hash_N: uint64, equal for equal documents.
      num_inputs: number of documents before those that are held out as a whole; copies of held-out
        documents among them are dropped.
      of_all: whether only the first of any equal documents is kept.
    """
    inputs, held_out = hash_N[:num_inputs], np.sort(hash_N[num_inputs:])
    is_copy_N = np.zeros(len(hash_N), bool)
    is_copy_N[:num_inputs] = np.searchsorted(held_out, inputs) < np.searchsorted(
        held_out, inputs, side="right"
    )
    if of_all:
        order = np.argsort(hash_N, kind="stable")
        order = order[~is_copy_N[order]]
        ascending = hash_N[order]
        is_copy_N[order[1:][ascending[1:] == ascending[:-1]]] = True
    return is_copy_N


def heldout_range(num_tokens: int, settings: Settings) -> tuple[float, float]:
    """Least and most tokens of a held-out split: a window, and about the share asked for.

    Args:
      num_tokens: number of tokens of all splits.
      settings: settings of the preparation; uses `heldout_fraction` and `seq_len`.
    """
    share, window = settings.heldout_fraction * num_tokens, settings.tokens_per_window
    deviation = _TOLERANCE * min(share, num_tokens - share)
    return max(share - deviation, window), max(share + deviation, 2 * window)


def _choices(
    hash_N: np.ndarray, length_N: np.ndarray, settings: Settings
) -> Iterator[tuple[np.ndarray, dict[int, int]]]:
    """Yields choices of the held-out split, best first.

    Args:
      hash_N: uint64, hash of each document.
      length_N: uint32, number of tokens; 0 for dropped documents.
      settings: see `split_documents`.

    Yields:
      is_heldout_N: bool, whether a document is held out as a whole.
      pieces: {document: number of tokens to hold out at its end}.
    """
    fraction = settings.heldout_fraction
    num_documents = int(np.count_nonzero(length_N))
    if not fraction or not num_documents:
        return
    # By number, then without the last of these documents and its duplicates.
    limit = _limit(hash_N, length_N > 0, max(1, round(fraction * num_documents)))
    yield hash_N < limit, {}
    yield hash_N < limit - 1, {}
    share = fraction * int(length_N.sum())
    if share < settings.tokens_per_window:
        return
    is_short_N = length_N <= share / 2
    long = np.flatnonzero(~is_short_N)
    of_hash, rest = _pieces(hash_N[long], length_N[long], share, settings)
    pieces = {int(n): of_hash[key] for n in long if (key := int(hash_N[n])) in of_hash}
    limit = _limit(hash_N, length_N * is_short_N, rest)
    yield (hash_N < limit) & is_short_N, pieces
    yield (hash_N < limit - 1) & is_short_N, pieces


def _limit(hash_N: np.ndarray, size_N: np.ndarray, share: float) -> int:
    """The least limit of the hashes of documents whose sizes add up to `share`; 0 for none.

    It is found bit by bit, as sorting takes another eight bytes a document.
    """
    if not 0 < share <= size_N.sum():
        return 0
    too_low = 0
    for bit in reversed(range(64)):
        if np.sum(size_N, where=hash_N < too_low + (1 << bit)) < share:
            too_low += 1 << bit
    return too_low + 1


def _pieces(
    hash_X: np.ndarray, length_X: np.ndarray, share: float, settings: Settings
) -> tuple[dict[int, int], float]:
    """The tokens to hold out of each document that is too long to be held out whole.

    Each gives the held-out fraction of its tokens. If that is less than a window, one of several
    documents gives the tokens of all of them.

    Args:
      hash_X: uint64, hashes of these documents.
      length_X: int64, their numbers of tokens.
      share: number of tokens to hold out.
      settings: uses `heldout_fraction` and `seq_len`.

    Returns:
      pieces: {hash of a document: number of tokens to hold out at its end}.
      rest: number of tokens that other documents have to give.
    """
    window, pieces = settings.tokens_per_window, dict[int, int]()
    wanted, num_held_out = 0.0, 0
    times = collections.Counter(zip(hash_X.tolist(), length_X.tolist(), strict=True))
    for (key, tokens), num_copies in sorted(times.items()):
        wanted += settings.heldout_fraction * tokens * num_copies
        piece = min(round(wanted / num_copies), tokens - window)
        if piece >= window:
            pieces[key] = piece
            wanted -= piece * num_copies
            num_held_out += piece * num_copies
    return pieces, share - num_held_out


def _cut(work_dir: str, starts: np.ndarray, dtype: np.dtype, document: int, piece: int) -> int:
    """Number of tokens of a document before its held-out end of about `piece` tokens.

    The end begins with a sentence, the one nearest to where a piece of that length begins, but
    is not more than half as long again.

    Args:
      work_dir: directory of the token files.
      starts: int64, index of the first document of each shard.
      dtype: data type of token files.
      document: index of the document.
      piece: number of tokens to hold out.
    """
    shard = int(np.searchsorted(starts, document, side="right")) - 1
    lengths = read_document_table(work_dir, shard)["length"].tolist()
    *before, length = lengths[: document - int(starts[shard]) + 1]
    reach = max(1, min(piece, length - piece) // 2)
    begin = sum(before) + length - piece
    tokens = read_tokens(work_dir, shard, dtype, begin - reach, begin + reach)
    ends = np.flatnonzero(tokens & sentence_end_bit(dtype)) + 1 - reach
    return length - piece + (int(ends[np.argmin(np.abs(ends))]) if len(ends) else 0)


def _hashes(fingerprint_N: np.ndarray, seed: int) -> np.ndarray:
    """Hash of (seed, fingerprint) of each document, uint64 (SplitMix64)."""
    x = fingerprint_N + np.uint64((seed * 0x9E3779B97F4A7C15) % (1 << 64))
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
