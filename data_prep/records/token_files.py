"""Pass 1: reads, filters and tokenizes the documents of a shard, and writes token files.

Files per shard:

    000000.tokens      token ids of all documents, each followed by EOD
    000000.documents   length and fingerprint of each document (`DOCUMENT`)
    000000.json        completion record: counts and checksums; written last, see `run_once`

The highest bit of a token marks the end of a sentence: the token is the last of its line (where
white space is kept, its line breaks), or ends
in a period, question or exclamation mark and is followed by a new word, or ends in a full stop of a
script without spaces. In Thai and Lao, which have no full stop, a space ends a sentence. EOD ends
the last sentence of its document. Tokens are stored in 16 bits if V is at most 2^15, else in 32.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import os
import re
from collections.abc import Callable, Sequence
from typing import IO, Any

import numpy as np

from data_prep.corpus.filters import reason_to_drop
from data_prep.corpus.formats import Counts, Shard
from data_prep.corpus.readers import Document, read_documents
from data_prep.corpus.versions import checksum_of
from data_prep.record_settings import Settings
from official.xlnet.errors import require_data
from official.xlnet.files import file_system
from official.xlnet.files.atomic import atomic_write
from official.xlnet.files.checksums import sha256_of
from official.xlnet.files.json_files import read_record, write_json
from official.xlnet.tokenization.special_tokens import EOD_ID, WORD_START
from official.xlnet.tokenization.tokenizer import Tokenizer
from official.xlnet.tokenization.unspaced_scripts import (
    CLOSING_MARKS,
    FULL_STOPS,
    begins_unspaced_sentence,
    begins_unspaced_word,
    ends_in_thai_or_lao,
)

DOCUMENT = np.dtype([("length", "<u4"), ("fingerprint", "<u8")])
# Count of the characters of documents that are kept; `characters` also counts the others'.
TOKENIZED_CHARACTERS = "tokenized_characters"

# Sentence-final punctuation, optionally followed by closing brackets and quotes.
_SENTENCE_END = re.compile("[.!?。！？…][\"')\\]»”’」』]*$")
# Punctuation of scripts without spaces between words.
_NO_SPACE_NEEDED = re.compile(f"[{FULL_STOPS}][{CLOSING_MARKS}]*$")


class HashedFile:
    """A binary file that is written, with the SHA-256 of what was written so far.

    Args:
      file: the file to write to.
    """

    def __init__(self, file: IO[bytes]):
        self._file = file
        self._digest = hashlib.sha256()

    def write(self, data: bytes) -> None:
        """Writes bytes."""
        self._digest.update(data)
        self._file.write(data)

    @property
    def sha256(self) -> str:
        """The checksum, in hexadecimal."""
        return self._digest.hexdigest()


def run_once(
    record: str,
    outputs: Sequence[str],
    work_dir: str,
    task: Callable[[], dict[str, Any]],
    report: Callable[[], Any],
) -> dict[str, Any]:
    """Runs a task, unless it is complete by the checksums of its outputs.

    Args:
      record: path of the completion record, which is written last.
      outputs: the files that the task writes.
      work_dir: directory of intermediate files.
      task: writes the outputs; returns the completion record, with their checksums as `sha256`.
      report: called instead of it if it is complete.

    Returns:
      The completion record, plus "resumed": whether the task had been completed before.
    """
    completion = read_record(record)
    if completion and completion.get("sha256") == [sha256_of(path) for path in outputs]:
        report()
        return {**completion, "resumed": True}
    completion = task()
    write_json(record, completion, temporary_dir(work_dir))
    return {**completion, "resumed": False}


def temporary_dir(work_dir: str) -> str:
    """Directory of temporary files, which has few others: each file that is made looks there."""
    path = os.path.join(work_dir, "temporary")
    file_system.make_dirs(path)
    return path


def token_dtype(vocab_size: int) -> np.dtype:
    """Returns the data type of token files for a vocabulary size."""
    return np.dtype("<u2" if vocab_size <= 1 << 15 else "<u4")


def sentence_end_bit(dtype: np.dtype) -> int:
    """Returns the bit that marks the last token of a sentence."""
    return 1 << (8 * dtype.itemsize - 1)


def shard_file(work_dir: str, shard: int, ending: str) -> str:
    """Path of a file of a shard: its `tokens`, `documents` or completion record (`json`)."""
    return os.path.join(work_dir, f"{shard:06d}.{ending}")


def write_token_files(
    index: int,
    shard: Shard,
    settings: Settings,
    vocab_file: str,
    vocab_sha256: str,
    work_dir: str,
    report: Callable[[int], Any],
) -> dict[str, Any]:
    """Reads, filters and tokenizes a shard, unless it is already complete (by its checksums).

    Args:
      index: index of the shard.
      shard: the shard.
      settings: settings of the preparation.
      vocab_file: path of the vocabulary.
      vocab_sha256: SHA-256 of this file, in hexadecimal.
      work_dir: directory of the token files.
      report: progress callback; called with numbers of bytes read, which sum to
        `shard.num_bytes`.

    Returns:
      The completion record `{"counts": {name: number}, "content": …, "first_lost": …, "sha256":
      […]}`, plus "resumed": whether the shard had been completed before. Counts are `documents`,
      `tokens`, and statistics of text read, dropped and repaired; `content` is the checksum of the
      text, `first_lost` the error message of the first unreadable record.

    Raises:
      DataError: the text of the shard is invalid, or the vocabulary is another one by now.
    """
    outputs = [shard_file(work_dir, index, ending) for ending in ("tokens", "documents")]

    def write() -> dict[str, Any]:
        with (
            atomic_write(outputs[0], temporary_dir(work_dir)) as tokens,
            atomic_write(outputs[1], temporary_dir(work_dir)) as documents,
        ):
            files = HashedFile(tokens), HashedFile(documents)
            content, counts = checksum_of(shard), Counts()
            cleaning = settings.lowercase, settings.keep_accents
            vocabulary = _vocabulary(vocab_file, vocab_sha256, *cleaning)
            for batch in read_documents(shard, settings, counts, report):
                arrays = _tokenize(batch, settings, *vocabulary, counts)
                for file, array in zip(files, arrays, strict=True):
                    file.write(array.tobytes())
        return {
            "counts": dict(counts),
            "content": content,
            "first_lost": counts.first_lost,
            "sha256": [file.sha256 for file in files],
        }

    record = shard_file(work_dir, index, "json")
    return run_once(record, outputs, work_dir, write, lambda: report(shard.num_bytes))


def read_document_table(work_dir: str, shard: int) -> np.ndarray:
    """Returns the document table of a shard, `DOCUMENT` [number of documents]."""
    return np.frombuffer(file_system.read_bytes(shard_file(work_dir, shard, "documents")), DOCUMENT)


def read_tokens(work_dir: str, shard: int, dtype: np.dtype, start: int, stop: int) -> np.ndarray:
    """Returns tokens [start, stop) of the token file of a shard, with the sentence-end bit."""
    with file_system.open(shard_file(work_dir, shard, "tokens"), "rb", buffering=0) as file:
        file.seek(start * dtype.itemsize)
        return np.frombuffer(file.read((stop - start) * dtype.itemsize), dtype)


# Properties of a piece, one bit each: whether it always ends a sentence; ends one if it is followed
# by a new word; ends one if a space follows and then a word of such a script.
_ALWAYS_ENDS, _MAY_END, _ENDS_BEFORE_SPACE = 1 << 0, 1 << 1, 1 << 2
# In the same order, what a piece is after such a piece: a closing mark, which belongs to the
# sentence before it; a new word, after a space or without one; the space or word of the script.
_AFTER = 3  # Number of bits by which these are shifted.
_CLOSES, _BEGINS_WORD, _BEGINS_AFTER_SPACE = 1 << 3, 1 << 4, 1 << 5


@functools.lru_cache(maxsize=1)
def _vocabulary(
    vocab_file: str, sha256: str, lowercase: bool, keep_accents: bool
) -> tuple[Tokenizer, np.ndarray]:
    """The tokenizer, and uint8 [V], properties of its pieces for sentence splitting.

    The checksum tells vocabularies apart that a process reads from one path, one after the other.
    """
    tokenizer = Tokenizer(vocab_file, lowercase, keep_accents)
    require_data(
        tokenizer.sha256 == sha256,
        f"vocabulary {vocab_file!r}",
        f"SHA-256 {sha256:.12}…, as when the preparation began",
        f"{tokenizer.sha256:.12}…: run the same command again",
    )
    pieces = map(tokenizer.id_to_piece, range(tokenizer.vocab_size))
    return tokenizer, np.fromiter(map(_properties, pieces), np.uint8, tokenizer.vocab_size)


def _properties(piece: str) -> int:
    """The properties of a piece for sentence splitting, as bits."""
    begins_word = piece.startswith(WORD_START)
    begins_thai_or_lao = begins_word and begins_unspaced_word(piece[1:])
    is_true = {
        _ALWAYS_ENDS: piece == "\n" or _NO_SPACE_NEEDED.search(piece),
        _MAY_END: _SENTENCE_END.search(piece),
        _ENDS_BEFORE_SPACE: ends_in_thai_or_lao(piece),
        _CLOSES: piece in (*CLOSING_MARKS, "\n"),
        _BEGINS_WORD: begins_word or begins_unspaced_sentence(piece),
        _BEGINS_AFTER_SPACE: piece == WORD_START or begins_thai_or_lao,
    }
    return sum(bit for bit, holds in is_true.items() if holds)


def _tokenize(
    batch: list[Document],
    settings: Settings,
    tokenizer: Tokenizer,
    piece_V: np.ndarray,
    counts: Counts,
) -> tuple[np.ndarray, np.ndarray]:
    """Filters and tokenizes documents, and counts them; see `_encode`."""
    kept = []
    for document in batch:
        reason = "empty" if not document else reason_to_drop(document, settings)
        counts[reason or "documents"] += 1
        if reason is None:
            kept.append(document)
    tokenizer.counts.clear()
    tokens, documents = _encode(kept, tokenizer, piece_V)
    for name in {"unknown_characters", "other_case"} & tokenizer.counts.keys():
        counts[name] += tokenizer.counts[name]
    counts["unknown_tokens"] += tokenizer.counts["unknown_tokens"]
    counts[TOKENIZED_CHARACTERS] += tokenizer.counts["characters"]
    # Documents that are empty after normalization have no tokens.
    counts["empty"] += len(kept) - len(documents)
    counts["documents"] -= len(kept) - len(documents)
    counts["tokens"] += len(tokens)
    return tokens, documents


def _encode(
    documents: list[Document], tokenizer: Tokenizer, piece_V: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Tokenizes documents and computes their document table; documents without tokens are skipped.

    Returns:
      tokens: `token_dtype` [number of tokens], each document followed by EOD, with the
        sentence-end bit.
      documents: `DOCUMENT` [number of documents with tokens].
    """
    dtype = token_dtype(tokenizer.vocab_size)
    if tokenizer.keep_whitespace:  # The text as it is.
        documents = [["".join(document)] for document in documents]
    lines = itertools.chain.from_iterable(documents)
    ids, length_of_line = tokenizer.encode_flat(lines)
    row_end = np.cumsum(length_of_line)
    last_row = np.cumsum([len(document) for document in documents], dtype=np.int64) - 1
    document_end = np.unique(row_end[last_row])  # Merges documents without tokens.
    document_end = document_end[document_end > 0]

    piece_N = piece_V[ids]
    pair_N = piece_N[:-1] & (piece_N[1:] >> _AFTER)  # The bits before that meet those after.
    is_closed = (pair_N & _ALWAYS_ENDS) != 0
    ends_sentence = (piece_N & _ALWAYS_ENDS) != 0
    ends_sentence[:-1] &= ~is_closed
    ends_sentence[1:] |= is_closed
    ends_sentence[:-1] |= (pair_N & (_MAY_END | _ENDS_BEFORE_SPACE)) != 0
    ends_sentence[row_end[row_end > 0] - 1] = True
    ends_sentence[document_end - 1] = False  # EOD ends it.

    bit = sentence_end_bit(dtype)
    length = np.diff(document_end, prepend=0) + 1
    eod = np.cumsum(length) - 1
    tokens = np.empty(len(ids) + len(length), dtype)
    is_text = np.ones(len(tokens), bool)
    is_text[eod] = False
    tokens[is_text] = ids.astype(dtype) | ends_sentence * dtype.type(bit)
    tokens[eod] = EOD_ID | bit

    table = np.empty(len(length), DOCUMENT)
    table["length"] = length
    data, size = memoryview(tokens.tobytes()), tokens.itemsize
    table["fingerprint"] = [
        int.from_bytes(hashlib.blake2b(data[a * size : b * size], digest_size=8).digest(), "little")
        for a, b in zip((eod - length + 1).tolist(), (eod + 1).tolist(), strict=True)
    ]
    return tokens, table
