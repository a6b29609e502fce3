"""Training of SentencePiece vocabularies compatible with the published checkpoints.

Special tokens have the same ids as in the published vocabularies. They are control symbols: the
text `<sep>` is never tokenized as SEP. A few punctuation marks are user-defined symbols, as in the
published vocabularies. Memory is bounded: large corpora are sampled by line.

A vocabulary that keeps white space has line breaks, tabs and runs of spaces as user-defined
symbols, and all characters of the sample; a mark in the file says that texts are not cleaned.

The time of training grows with the length of all distinct words, not of the text. In text without
spaces, such as DNA, proteins or Chinese, every line is a word of its own, so a smaller sample and
fewer candidates are used there: as many as the size of the vocabulary needs.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import io
import itertools
import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import sentencepiece

from data_prep.corpus.corpus import Paths, find_shards, list_of_paths
from data_prep.corpus.formats import LOST, Counts
from data_prep.corpus.readers import read_documents
from data_prep.settings import SampleOptions
from official.xlnet.data.file_names import MANIFEST_FILE
from official.xlnet.data.lost_rows import check_lost
from official.xlnet.errors import DataError
from official.xlnet.files.atomic import write_bytes
from official.xlnet.files.locks import only_writer
from official.xlnet.runtime.progress import counting, elapsed_time
from official.xlnet.tokenization.special_tokens import (
    SPECIAL_PIECES,
    UNK_ID,
    VOCAB_FILE,
    WHITESPACE_PIECES,
)
from official.xlnet.tokenization.text_cleaning import clean
from official.xlnet.tokenization.vocabulary_file import require_no_owner

_USER_DEFINED_SYMBOLS = (".", "(", ")", '"', "-", "–", "£", "€")
_CHARACTER_COVERAGE = 0.99995
_MAX_LINE_CHARS = 2000  # Longer lines are split; SentencePiece skips long sentences.
_MAX_UTF8_BYTES = 8  # Upper bound of the bytes per character, for SentencePiece's limit.
_OVERSAMPLING = 4  # Lines are sampled from shards of this many times the sample size.
# Characters and candidates of text without spaces for each piece, and the least of both.
_UNSPACED_CHARS, _UNSPACED_SEEDS = 500, 10
_MIN_UNSPACED_CHARS, _MIN_UNSPACED_SEEDS = 500_000, 10_000
_MAX_SEEDS = 1_000_000  # SentencePiece's default.
# Settings of SentencePiece that keep white space.
_AS_IT_IS: dict[str, Any] = {
    "normalization_rule_name": "identity",
    "remove_extra_whitespaces": False,
}
# The result of SentencePiece depends on the number of threads.
_NUM_THREADS = 8


def write_trained(
    inputs: Paths,
    output: str,
    size: int,
    sampling: SampleOptions,
    lowercase: bool = False,
    keep_accents: bool = False,
) -> dict[str, float]:
    """Trains a SentencePiece unigram vocabulary and writes `output/spiece.model`.

    Args:
      inputs: see `corpus.find_shards`.
      output: output directory; created if it does not exist.
      size: vocabulary size V, including the 17 predefined pieces; `train_vocabulary` checks it.
      sampling: how the text is read and sampled.
      lowercase: whether to lower-case the text; use the same value for tokenization.
      keep_accents: whether to keep accents; use the same value for tokenization.

    Returns:
      `vocab_size` and `coverage`, the fraction of the characters of the sample that are covered.

    Raises:
      DataError: there is no text, or not enough text for the vocabulary size, or the directory
        holds a model or a data set with another vocabulary.
    """
    inputs = list_of_paths(inputs)
    with only_writer(output):
        sample = read_sample(inputs, sampling, lowercase, keep_accents)
        model = train_unigram(
            sample.sentences, size, progress=sampling.progress, whitespace=sampling.keep_whitespace
        )
        require_no_owner(output, model, MANIFEST_FILE)
        write_bytes(os.path.join(output, VOCAB_FILE), model)
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
            count
            for character, count in self.characters.items()
            if UNK_ID not in processor.encode(character)
        )
        return covered / self.characters.total()


def read_sample(
    inputs: Paths, options: SampleOptions, lowercase: bool, keep_accents: bool
) -> Sample:
    """Reads a random sample of the lines of a corpus; see `train_vocabulary`.

    Raises:
      DataError: there is no text.
    """
    inputs = list_of_paths(inputs)
    sentences: list[str] = []
    characters: collections.Counter[str] = collections.Counter()
    for line in _sampled_lines(inputs, options):
        cleaned = clean(line, lowercase, keep_accents, options.keep_whitespace)
        characters.update(cleaned)
        if options.keep_whitespace:  # Words at the beginning of a line have no space before them.
            cleaned = "\n" + cleaned
        sentences += re.findall(
            rf"(?s).{{1,{_MAX_LINE_CHARS}}}(?:\s|$)|\S{{1,{_MAX_LINE_CHARS}}}", cleaned
        )
    del characters[" "]
    if not any(map(str.strip, characters)):
        raise DataError(f"no text in {', '.join(inputs)}: expected text to train a vocabulary on")
    return Sample(sentences, characters)


def _sampled_lines(inputs: Sequence[str], options: SampleOptions) -> Iterator[str]:
    """Samples about `sample_bytes` of lines from a random subset of the shards."""
    shards = find_shards(inputs, options)
    rng = np.random.Generator(np.random.Philox(options.seed % (1 << 64)))
    order = rng.permutation(len(shards))
    total = np.cumsum([shards[i].num_bytes for i in order])
    chosen = sorted(order[: np.searchsorted(total, _OVERSAMPLING * options.sample_bytes) + 1])
    num_bytes = sum(shards[i].num_bytes for i in chosen)
    share = min(1.0, options.sample_bytes / max(1, num_bytes))
    counts, num_records = Counts(), 0
    with counting(options.progress, desc="sample", total=num_bytes, unit="B") as add:
        for i in chosen:
            for documents in read_documents(shards[i], options, counts, add):
                num_records += len(documents)
                for document in documents:
                    yield from itertools.compress(document, rng.random(len(document)) < share)
    lost = {name: counts[name] for name in LOST}
    check_lost(
        ", ".join(inputs),
        lost,
        num_records + sum(lost.values()),
        options.max_lost,
        unit="records",
        first=counts.first_lost,
    )


def train_unigram(
    sentences: list[str],
    size: int,
    allow_fewer: bool = False,
    progress: bool = False,
    whitespace: bool = False,
) -> bytes:
    """Trains a SentencePiece unigram model.

    Args:
      sentences: the text; a part of it is used if it has no spaces and is long.
      size: number of pieces, special tokens included.
      allow_fewer: whether the model may have fewer pieces, where the text has not enough.
      progress: whether to show how long it has been running, on standard error.
      whitespace: whether the model keeps white space.

    Returns:
      The serialized model.

    Raises:
      DataError: the text does not have pieces enough, or has too many characters.
    """
    model, seeds = io.BytesIO(), _MAX_SEEDS
    if share := _unspaced_share(sentences, size):
        rng = np.random.Generator(np.random.Philox(0))
        sentences = [*itertools.compress(sentences, rng.random(len(sentences)) < share)]
        seeds = min(seeds, max(_UNSPACED_SEEDS * size, _MIN_UNSPACED_SEEDS))
    num_characters = sum(map(len, sentences))
    symbols = list(_USER_DEFINED_SYMBOLS)
    if whitespace:
        symbols += WHITESPACE_PIECES
    try:
        shown = elapsed_time(f"training on {num_characters:,} characters")
        with shown if progress else contextlib.nullcontext():
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
                user_defined_symbols=symbols,
                character_coverage=1.0 if whitespace else _CHARACTER_COVERAGE,
                seed_sentencepiece_size=seeds,
                max_sentence_length=_MAX_UTF8_BYTES * _MAX_LINE_CHARS,
                num_threads=_NUM_THREADS,
                minloglevel=2,
                **(_AS_IT_IS if whitespace else {}),
            )
    except (RuntimeError, ValueError) as error:
        message = str(error)
        if most := re.search(r"value <= (\d+)", message):
            raise DataError(
                f"not enough text for a vocabulary of {size} pieces: expected --size of at most "
                f"{most[1]}"
            ) from None
        if least := re.search(r"required_chars[^\d]*\d+ vs (\d+)", message):
            raise DataError(
                f"the text has more characters than fit into a vocabulary of {size} pieces: "
                f"expected --size of at least {least[1]}"
            ) from None
        raise DataError(f"SentencePiece cannot train on the text: {message}") from None
    if not whitespace:
        return model.getvalue()
    from official.xlnet.tokenization.normalizers import make_whitespace_kept
    from official.xlnet.tokenization.sentencepiece_proto import parse_model

    tree = parse_model(model.getvalue())
    make_whitespace_kept(tree)
    return tree.SerializeToString(deterministic=True)


def _unspaced_share(sentences: list[str], size: int) -> float:
    """The share of the text to train on, if it is long and without spaces; else 0."""
    words = collections.Counter(word for line in sentences for word in line.split())
    distinct = sum(map(len, words))
    enough = max(_UNSPACED_CHARS * size, _MIN_UNSPACED_CHARS)
    if distinct < enough or 2 * distinct < sum(len(word) * n for word, n in words.items()):
        return 0
    return enough / distinct
