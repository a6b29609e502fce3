"""Pass 1: a shard's documents as token ids on disk.

Every shard becomes two files and a note of what they hold:

    00000.tokens      the ids of all documents, each followed by EOD
    00000.documents   length and fingerprint of every document (`DOCUMENT`)
    00000.json        counts and checksums; written last, so its presence means the shard is done

The highest bit of a token says that a sentence ends with it: it is the last token of a line, or
it ends in a full stop, question or exclamation mark before a new word. EOD ends the last sentence
of its document. Ids take 16 bits where V fits into the other 15, else 32.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from data_prep.atomic import atomic_write, read_json, sha256_of, write_json
from data_prep.corpus.corpus import Shard
from data_prep.corpus.filters import reason_to_drop
from data_prep.corpus.readers import Counts, Document, read_documents
from data_prep.settings import Settings
from official.xlnet.tokenization.special_tokens import EOD_ID
from official.xlnet.tokenization.tokenizer import WORD_START, Tokenizer

DOCUMENT = np.dtype([("length", "<u4"), ("fingerprint", "<u8")])

# A full stop or its like, and the brackets and quotes that may close after it.
_SENTENCE_END = re.compile("[.!?。！？…][\"')\\]»”’」』]*$")
_NO_SPACE_NEEDED = re.compile("[。！？][」』”’]*$")


def token_dtype(vocab_size: int) -> np.dtype:
    """Type of the tokens of a vocabulary in token files."""
    return np.dtype("<u2" if vocab_size <= 1 << 15 else "<u4")


def sentence_end_bit(dtype: np.dtype) -> int:
    """The bit of a token that says that a sentence ends with it."""
    return 1 << (8 * dtype.itemsize - 1)


def token_path(work_dir: str, shard: int) -> str:
    """Path of a shard's token file."""
    return os.path.join(work_dir, f"{shard:06d}.tokens")


def documents_path(work_dir: str, shard: int) -> str:
    """Path of a shard's list of documents."""
    return os.path.join(work_dir, f"{shard:06d}.documents")


def note_path(work_dir: str, shard: int) -> str:
    """Path of the note that a shard is done."""
    return os.path.join(work_dir, f"{shard:06d}.json")


def write_token_files(
    index: int,
    shard: Shard,
    settings: Settings,
    vocab_file: str,
    work_dir: str,
    report: Callable[[int], Any],
) -> dict[str, Any]:
    """Reads, filters and tokenizes one shard.

    A shard that is done already, as its checksums show, is left alone.

    Args:
      index: number of the shard.
      shard: which piece of the corpus.
      settings: what to keep and how to clean it.
      vocab_file: the vocabulary.
      work_dir: where the files go.
      report: called with numbers of bytes read; `shard.num_bytes` in all.

    Returns:
      The note that is left: `{"counts": {what: how many}, "sha256": …}`, with "resumed" to say
      whether the shard was done before. Counts are `documents`, `tokens`, and what was read,
      dropped and mended.

    Raises:
      DataError: the shard cannot be read.
    """
    tokens_file, documents_file = token_path(work_dir, index), documents_path(work_dir, index)
    note_file = note_path(work_dir, index)
    note = read_json(note_file)
    if note is not None and note["sha256"] == [sha256_of(tokens_file), sha256_of(documents_file)]:
        report(shard.num_bytes)
        return {**note, "resumed": True}

    vocabulary = _vocabulary(vocab_file, settings.lowercase, settings.keep_accents)
    counts = Counts()
    digests = [hashlib.sha256(), hashlib.sha256()]
    with (
        atomic_write(tokens_file, work_dir) as token_output,
        atomic_write(documents_file, work_dir) as document_output,
    ):
        for batch in read_documents(shard, settings, counts, report):
            kept = []
            for document in batch:
                reason = "empty" if not document else reason_to_drop(document, settings)
                counts[reason or "documents"] += 1
                if reason is None:
                    kept.append(document)
            tokens, documents = _encode(kept, vocabulary)
            # Text of nothing but characters that cleaning removes has no tokens.
            counts["empty"] += len(kept) - len(documents)
            counts["documents"] -= len(kept) - len(documents)
            counts["tokens"] += len(tokens)
            for output, digest, array in zip(
                (token_output, document_output), digests, (tokens, documents), strict=True
            ):
                digest.update(array.tobytes())
                output.write(array.tobytes())
    note = {"counts": dict(counts), "sha256": [digest.hexdigest() for digest in digests]}
    write_json(note_file, note, work_dir)
    return {**note, "resumed": False}


def read_document_table(work_dir: str, shard: int) -> np.ndarray:
    """Length and fingerprint of every document of a shard, `DOCUMENT` [number of documents]."""
    return np.fromfile(documents_path(work_dir, shard), DOCUMENT)


class _Vocabulary(NamedTuple):
    """A tokenizer and what sentences end and begin with.

    Attributes:
      tokenizer: the tokenizer.
      dtype: see `token_dtype`.
      may_end: bool [V], pieces that end a sentence if a new word follows.
      always_ends: bool [V], pieces that end a sentence whatever follows.
      begins_word: bool [V], pieces that follow a space.
    """

    tokenizer: Tokenizer
    dtype: np.dtype
    may_end: np.ndarray
    always_ends: np.ndarray
    begins_word: np.ndarray


@functools.lru_cache(maxsize=1)
def _vocabulary(vocab_file: str, lowercase: bool, keep_accents: bool) -> _Vocabulary:
    tokenizer = Tokenizer(vocab_file, lowercase, keep_accents)
    pieces = [tokenizer.id_to_piece(i) for i in range(tokenizer.vocab_size)]
    return _Vocabulary(
        tokenizer=tokenizer,
        dtype=token_dtype(tokenizer.vocab_size),
        may_end=np.array([bool(_SENTENCE_END.search(piece)) for piece in pieces]),
        always_ends=np.array([bool(_NO_SPACE_NEEDED.search(piece)) for piece in pieces]),
        begins_word=np.array([piece.startswith(WORD_START) for piece in pieces]),
    )


def _encode(documents: list[Document], vocabulary: _Vocabulary) -> tuple[np.ndarray, np.ndarray]:
    """Tokens of documents, each followed by EOD, and the list of those that have any.

    Returns:
      tokens: `vocabulary.dtype` [number of tokens], with the bit of sentence ends.
      documents: `DOCUMENT` [number of documents with tokens].
    """
    rows = vocabulary.tokenizer.encode_batch(line for document in documents for line in document)
    if not rows:
        return np.zeros(0, vocabulary.dtype), np.zeros(0, DOCUMENT)
    ids = np.concatenate(rows)
    row_end = np.cumsum(np.fromiter(map(len, rows), np.int64, len(rows)))
    last_row = np.cumsum([len(document) for document in documents]) - 1
    document_end = np.unique(row_end[last_row])  # Documents without tokens end where others do.
    document_end = document_end[document_end > 0]

    ends_sentence = vocabulary.always_ends[ids]
    ends_sentence[:-1] |= vocabulary.may_end[ids[:-1]] & vocabulary.begins_word[ids[1:]]
    ends_sentence[row_end[row_end > 0] - 1] = True
    ends_sentence[document_end - 1] = False  # EOD does.

    bit = sentence_end_bit(vocabulary.dtype)
    length = np.diff(document_end, prepend=0) + 1
    eod = np.cumsum(length) - 1
    tokens = np.empty(len(ids) + len(length), vocabulary.dtype)
    is_text = np.ones(len(tokens), bool)
    is_text[eod] = False
    tokens[is_text] = ids | np.where(ends_sentence, bit, 0)
    tokens[eod] = EOD_ID | bit

    table = np.empty(len(length), DOCUMENT)
    table["length"] = length
    data, size = memoryview(tokens.tobytes()), tokens.itemsize
    table["fingerprint"] = [
        int.from_bytes(hashlib.blake2b(data[a * size : b * size], digest_size=8).digest(), "little")
        for a, b in zip((eod - length + 1).tolist(), (eod + 1).tolist(), strict=True)
    ]
    return tokens, table
