"""Training of SentencePiece vocabularies compatible with the published checkpoints.

Special tokens have the same ids as in the published vocabularies. They are control symbols: the
text `<sep>` is never tokenized as SEP. A few punctuation marks are user-defined symbols, as in the
published vocabularies. Memory is bounded: large corpora are sampled by line.
"""

from __future__ import annotations

import collections
import dataclasses
import io
import os
import re
from collections.abc import Iterator, Sequence

import numpy as np
import sentencepiece
import tqdm

from data_prep.corpus.corpus import find_shards
from data_prep.corpus.readers import Counts, read_documents
from data_prep.settings import ReadOptions
from official.xlnet.errors import DataError
from official.xlnet.files.atomic import atomic_write
from official.xlnet.files.locks import only_writer
from official.xlnet.tokenization.special_tokens import (
    NUM_SPECIAL,
    SPECIAL_PIECES,
    UNK_ID,
    VOCAB_FILE,
)
from official.xlnet.tokenization.text_cleaning import clean

_USER_DEFINED_SYMBOLS = (".", "(", ")", '"', "-", "–", "£", "€")
MAX_VOCAB_SIZE = 1 << 21  # What records can hold.
_CHARACTER_COVERAGE = 0.99995
_MAX_LINE_CHARS = 2000  # Longer lines are split; SentencePiece skips long sentences.
_MAX_UTF8_BYTES = 8  # Upper bound of the bytes per character, for SentencePiece's limit.
_OVERSAMPLING = 4  # Lines are sampled from shards of this many times the sample size.
# The result of SentencePiece depends on the number of threads.
_NUM_THREADS = 8


def train_vocabulary(
    inputs: Sequence[str],
    output_dir: str,
    size: int,
    *,
    lowercase: bool = False,
    keep_accents: bool = False,
    sample_bytes: int = 100_000_000,
    seed: int = 0,
    progress: bool = False,
    format: str = "auto",
    text_field: str = "text",
    on_bad_utf8: str = "error",
) -> dict[str, float]:
    """Trains a SentencePiece unigram vocabulary and writes `output_dir/spiece.model`.

    Args:
      inputs: file names, glob patterns or `tfds:NAME:SPLIT`; see `corpus.find_shards`.
      output_dir: output directory; created if it does not exist.
      size: vocabulary size V, including the 9 special tokens.
      lowercase: whether to lower-case the text; use the same value for tokenization.
      keep_accents: whether to keep accents; use the same value for tokenization.
      sample_bytes: approximate amount of text to train on, in bytes, sampled by line.
      seed: random seed of the sample.
      progress: whether to show a progress bar, if standard error is a terminal.
      format: input format, one of `settings.FORMATS`.
      text_field: JSON field, Parquet column or TFDS feature that contains the text.
      on_bad_utf8: handling of invalid UTF-8: `error`, or `replace` by U+FFFD.

    Returns:
      A dictionary with:
        vocab_size: vocabulary size.
        coverage: fraction of the characters of the sample that the vocabulary covers.

    Raises:
      DataError: there is no text, or not enough text for the vocabulary size.

    Example:
      >>> train_vocabulary(["corpus/*.txt"], "runs/vocab", 4000)
      {'vocab_size': 4000, 'coverage': 0.9999}
    """
    num_fixed = NUM_SPECIAL + len(_USER_DEFINED_SYMBOLS)
    if not num_fixed < size <= MAX_VOCAB_SIZE:
        raise DataError(
            f"size: expected more than the {num_fixed} predefined pieces and at most "
            f"{MAX_VOCAB_SIZE:,}, got {size}"
        )
    options = ReadOptions(format=format, text_field=text_field, on_bad_utf8=on_bad_utf8)
    with only_writer(output_dir):
        sample = read_sample(inputs, options, sample_bytes, seed, lowercase, keep_accents, progress)
        model = train_unigram(sample.sentences, size)
        with atomic_write(os.path.join(output_dir, VOCAB_FILE)) as file:
            file.write(model)
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    return {"vocab_size": processor.vocab_size(), "coverage": sample.coverage(processor)}


@dataclasses.dataclass(frozen=True)
class Sample:
    """Text to train a vocabulary on.

    Attributes:
      sentences: cleaned text, in parts of at most a line.
      characters: {character, without spaces: number of times}.
    """

    sentences: list[str]
    characters: collections.Counter[str]

    def coverage(self, processor: sentencepiece.SentencePieceProcessor) -> float:
        """Fraction of the characters that a vocabulary covers."""
        covered = sum(
            number
            for character, number in self.characters.items()
            if UNK_ID not in processor.encode(character)
        )
        return covered / self.characters.total()


def read_sample(
    inputs: Sequence[str],
    options: ReadOptions,
    sample_bytes: int,
    seed: int,
    lowercase: bool,
    keep_accents: bool,
    progress: bool,
) -> Sample:
    """Reads a random sample of the lines of a corpus; see `train_vocabulary`.

    Raises:
      DataError: there is no text.
    """
    if sample_bytes < 1:
        raise DataError(f"sample_bytes: expected at least 1, got {sample_bytes}")
    sentences: list[str] = []
    characters: collections.Counter[str] = collections.Counter()
    for line in _sampled_lines(inputs, options, sample_bytes, seed, progress):
        cleaned = clean(line, lowercase, keep_accents)
        characters.update(cleaned)
        sentences += re.findall(
            rf"(?s).{{1,{_MAX_LINE_CHARS}}}(?:\s|$)|\S{{1,{_MAX_LINE_CHARS}}}", cleaned
        )
    del characters[" "]
    if not characters:
        raise DataError(f"no text in {', '.join(inputs)}: expected text to train a vocabulary on")
    return Sample(sentences, characters)


def _sampled_lines(
    inputs: Sequence[str], options: ReadOptions, sample_bytes: int, seed: int, progress: bool
) -> Iterator[str]:
    """Samples about `sample_bytes` of lines from a random subset of the shards."""
    shards = find_shards(inputs, options)
    rng = np.random.Generator(np.random.Philox(seed % (1 << 64)))
    order = rng.permutation(len(shards))
    total = np.cumsum([shards[i].num_bytes for i in order])
    chosen = sorted(order[: np.searchsorted(total, _OVERSAMPLING * sample_bytes) + 1])
    num_bytes = sum(shards[i].num_bytes for i in chosen)
    share = min(1.0, sample_bytes / max(1, num_bytes))
    with tqdm.tqdm(
        desc="sample",
        total=num_bytes,
        unit="B",
        unit_scale=True,
        disable=None if progress else True,
    ) as bar:
        for i in chosen:
            for documents in read_documents(shards[i], options, Counts(), bar.update):
                for document in documents:
                    is_chosen = rng.random(len(document)) < share
                    yield from (
                        line for line, keep in zip(document, is_chosen, strict=True) if keep
                    )


def train_unigram(sentences: list[str], size: int, allow_fewer: bool = False) -> bytes:
    """Trains a SentencePiece unigram model.

    Args:
      sentences: the text.
      size: number of pieces, special tokens included.
      allow_fewer: whether the model may have fewer pieces, where the text has not enough.

    Returns:
      The serialized model.

    Raises:
      DataError: the text does not have pieces enough, or has too many characters.
    """
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(sentences),
            model_writer=model,
            model_type="unigram",
            vocab_size=size,
            hard_vocab_limit=not allow_fewer,
            unk_id=0,
            bos_id=1,
            eos_id=2,
            pad_id=-1,
            control_symbols=list(SPECIAL_PIECES[3:]),
            user_defined_symbols=list(_USER_DEFINED_SYMBOLS),
            character_coverage=_CHARACTER_COVERAGE,
            max_sentence_length=_MAX_UTF8_BYTES * _MAX_LINE_CHARS,
            num_threads=_NUM_THREADS,
            minloglevel=2,
        )
    except (RuntimeError, ValueError) as error:
        message = str(error)
        if most := re.search(r"value <= (\d+)", message):
            raise DataError(
                f"not enough text for a vocabulary of {size} pieces: expected --size of at most "
                f"{most[1]}"
            ) from None
        if least := re.search(r"required_chars[^\d]*(\d+) vs (\d+)", message):
            raise DataError(
                f"the text has more characters than fit into a vocabulary of {size} pieces: "
                f"expected --size of at least {int(least[2]) + 1}"
            ) from None
        raise DataError(f"SentencePiece cannot train on the text: {message}") from None
    return model.getvalue()
