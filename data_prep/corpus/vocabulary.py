"""A SentencePiece vocabulary of one's own text, with the special ids of the published ones.

The special pieces are control symbols: text that spells `<sep>` never becomes the id of SEP. A few
marks are pieces of their own, as in the published vocabularies. Memory is bounded: a huge corpus
is sampled line by line.
"""

from __future__ import annotations

import collections
import io
import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import sentencepiece
import tqdm

from data_prep.atomic import atomic_write
from data_prep.corpus.corpus import find_shards
from data_prep.corpus.readers import Counts, read_documents
from data_prep.settings import ReadOptions
from official.xlnet.errors import DataError
from official.xlnet.tokenization.special_tokens import (
    NUM_SPECIAL,
    SPECIAL_PIECES,
    UNK_ID,
    VOCAB_FILE,
)
from official.xlnet.tokenization.text_cleaning import clean

_OWN_PIECES = (".", "(", ")", '"', "-", "–", "£", "€")
_CHARACTER_COVERAGE = 0.99995
_MAX_LINE_CHARS = 2000  # SentencePiece leaves longer sentences out.
# SentencePiece adds up counts thread by thread, so their number is part of the result.
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
    **options: Any,
) -> dict[str, float]:
    """Trains a unigram vocabulary and writes `output_dir/spiece.model`.

    Args:
      inputs: see `corpus.find_shards`.
      output_dir: directory of the vocabulary; made if it is not there.
      size: number of pieces V, the 9 special ones included.
      lowercase: whether text is lower-cased first, as it will be when it is tokenized.
      keep_accents: whether accents are kept.
      sample_bytes: train on about so much text, drawn line by line.
      seed: seed of the sample.
      progress: whether to show a progress bar on standard error if it is a terminal.
      **options: `format`, `text_field` and `on_bad_utf8` of `ReadOptions`.

    Returns:
      `vocab_size`, and `coverage`: share of the characters of the text (of its sample) that the
      vocabulary can write.

    Raises:
      DataError: there is no usable text, or too little of it for so many pieces.
    """
    if size <= NUM_SPECIAL + len(_OWN_PIECES):
        raise DataError(
            f"size: expected more than the {NUM_SPECIAL + len(_OWN_PIECES)} fixed pieces, "
            f"got {size}"
        )
    sample = _sample(inputs, ReadOptions(**options), sample_bytes, seed, progress)
    sentences: list[str] = []
    characters: collections.Counter[str] = collections.Counter()
    for line in sample:
        cleaned = clean(line, lowercase, keep_accents)
        characters.update(cleaned)
        sentences += re.findall(
            rf"(?s).{{1,{_MAX_LINE_CHARS}}}(?:\s|$)|\S{{1,{_MAX_LINE_CHARS}}}", cleaned
        )
    del characters[" "]
    if not characters:
        raise DataError(f"no text in {', '.join(inputs)}: nothing to make a vocabulary of")
    model = _train(sentences, size)
    os.makedirs(output_dir, exist_ok=True)
    with atomic_write(os.path.join(output_dir, VOCAB_FILE), output_dir) as file:
        file.write(model)
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    covered = sum(
        number
        for character, number in characters.items()
        if UNK_ID not in processor.encode(character)
    )
    return {
        "vocab_size": processor.vocab_size(),
        "coverage": covered / characters.total(),
    }


def _sample(
    inputs: Sequence[str], options: ReadOptions, sample_bytes: int, seed: int, progress: bool
) -> Iterator[str]:
    """Lines of a part of the shards: about `sample_bytes`, out of four times as much."""
    shards = find_shards(inputs, options)
    rng = np.random.Generator(np.random.Philox(seed % (1 << 64)))
    order = rng.permutation(len(shards))
    total = np.cumsum([shards[i].num_bytes for i in order])
    chosen = sorted(order[: np.searchsorted(total, 4 * sample_bytes) + 1])
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


def _train(sentences: list[str], size: int) -> bytes:
    """The serialized SentencePiece model."""
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(sentences),
            model_writer=model,
            model_type="unigram",
            vocab_size=size,
            unk_id=0,
            bos_id=1,
            eos_id=2,
            pad_id=-1,
            control_symbols=list(SPECIAL_PIECES[3:]),
            user_defined_symbols=list(_OWN_PIECES),
            character_coverage=_CHARACTER_COVERAGE,
            max_sentence_length=8 * _MAX_LINE_CHARS,
            num_threads=_NUM_THREADS,
            minloglevel=2,
        )
    except RuntimeError as error:
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
        raise
    return model.getvalue()
