"""Vocabularies: trained on text, or the vocabulary of a trained model with pieces of a domain."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from typing import Annotated, Any

import sentencepiece

from data_prep.corpus.corpus import DataFrame
from data_prep.corpus.vocabulary import MAX_VOCAB_SIZE, read_sample, write_trained
from data_prep.settings import OnBadUtf8, SampleOptions
from official.xlnet.configs.validation import require, require_one_of
from official.xlnet.data.lost_rows import MaxLost
from official.xlnet.files.arguments import COMMAS, AnyPath, OutputDirectory, Path
from official.xlnet.files.atomic import new_folder
from official.xlnet.files.public import public
from official.xlnet.files.schema import Range


@public(inputs="input", output_dir="output")
def train_vocabulary(
    input: AnyPath | Annotated[Sequence[AnyPath], COMMAS] | DataFrame,
    output: AnyPath,
    size: int | str = 32_000,
    *,
    extend: AnyPath | None = None,
    lowercase: bool = False,
    keep_accents: bool = False,
    keep_whitespace: bool = False,
    sample_bytes: Annotated[int, Range(1, 2**62)] = SampleOptions.sample_bytes,
    seed: Annotated[int, Range(0, 2**32 - 1)] = SampleOptions.seed,
    progress: bool = True,
    format: str = SampleOptions.format,
    text_field: str = SampleOptions.text_field,
    on_bad_utf8: OnBadUtf8 = SampleOptions.on_bad_utf8,
    max_lost: MaxLost = SampleOptions.max_lost,
) -> dict[str, Any]:
    """Trains a SentencePiece vocabulary on text, or extends the vocabulary of a model.

    With extend and a size of +N, writes the model with N new pieces of the text in its vocabulary,
    see `extend_vocabulary`.

    Args:
      input: files, glob patterns or tfds:NAME:SPLIT, separated by commas; in Python also a pandas
        data frame with a column `text`.
      output: output directory for spiece.model; with extend, for the model: must not exist or be
        empty.
      size: vocabulary size V, including the 9 special tokens; with extend, +N: the number of
        pieces to add.
      extend: model to extend: a model directory, HF folder or TF1 release.
      lowercase: lower-case the text; requires data.lowercase in the configuration.
      keep_accents: keep accents; requires data.keep_accents in the configuration.
      keep_whitespace: keep line breaks, tabs, runs of spaces, quotes and accents, for code, verse
        or notes.
      sample_bytes: approximate amount of text to train on, in bytes, sampled by line.
      seed: random seed of the sample.
      progress: whether to show a progress bar, on a terminal or in a notebook.
      format: format of the input files, see docs/data_preparation.md, or one of --import; `auto`
        detects it per file.
      text_field: field, column or feature that contains the text.
      on_bad_utf8: handling of invalid UTF-8: `error`, or `replace` by U+FFFD.
      max_lost: maximum fraction of bad records to skip; above it, the command fails.

    Returns:
      A dictionary with:
        vocab_size: vocabulary size.
        coverage: fraction of the characters of the sample that the vocabulary covers.
      and with `extend` what `extend_vocabulary` returns.

    Raises:
      ConfigError: an argument is out of range.
      DataError: there is no text, or not enough text for the vocabulary size, or the directory
        holds a model or a data set with another vocabulary.

    Example:
      $ xlnet vocab --input='corpus/*.txt' --output=runs/vocab --size=4000

      >>> train_vocabulary(["corpus/*.txt"], "runs/vocab", 4000)
      {'vocab_size': 4000, 'coverage': 0.9999}
    """
    options: dict[str, Any] = {
        "sample_bytes": sample_bytes,
        "seed": seed,
        "progress": progress,
        "format": format,
        "text_field": text_field,
        "on_bad_utf8": on_bad_utf8,
        "max_lost": max_lost,
    }
    pattern, least, expected = r"\d{1,7}", 18, "a vocabulary size (+N goes with extend)"
    if extend is not None:
        pattern, least, expected = r"\+\d{1,7}", 1, "the number of pieces to add with extend, as +N"
        named = {"lowercase": lowercase, "keep_accents": keep_accents}
        for name, value in {**named, "keep_whitespace": keep_whitespace}.items():
            normalized = "no such setting with extend, as the configuration of the model decides"
            require(not value, name, normalized, value)
    number = int(size) if re.fullmatch(pattern, str(size)) else -1
    expected = f"{expected}, from {least} to {MAX_VOCAB_SIZE}"
    require(least <= number <= MAX_VOCAB_SIZE, "size", expected, size)
    if extend is not None:
        return extend_vocabulary(extend, input, output, number, **options)
    sampling = SampleOptions(keep_whitespace=keep_whitespace, **options)
    return write_trained(input, output, number, sampling, lowercase, keep_accents)


@public()
def extend_vocabulary(
    model: Path,
    inputs: AnyPath | Sequence[AnyPath] | DataFrame,
    output: OutputDirectory,
    num_pieces: Annotated[int, Range(1)],
    **options: Any,
) -> dict[str, Any]:
    """Adds pieces of a domain to the vocabulary of a trained model; writes a model directory.

    Ids and scores of the old pieces stay, so text without new pieces is tokenized, and read by the
    model, as before. The embedding of a new piece is the mean embedding of the pieces that it
    replaces (see `checkpoints.extended_model`), all other weights are the same. The model is then
    to be pre-trained further on the domain. The output is created atomically.

    Args:
      model: a model directory, HF folder or TF1 release.
      inputs: text of the domain, as `train_vocabulary` takes it.
      output: output directory; must not exist or be empty.
      num_pieces: number of pieces to add.
      **options: how the text is read and sampled, as in `train_vocabulary`: `sample_bytes`, `seed`,
        `progress`, `format`, `text_field`, `on_bad_utf8` and `max_lost`.

    Returns:
      A dictionary with:
        vocab_size: vocabulary size, new pieces included.
        coverage: fraction of the characters of the text that the vocabulary covers.
        new_pieces: number of pieces added.
        tokens_before, tokens_after: tokens of the text (of its sample) in the old and in the new
          vocabulary.

    Raises:
      ConfigError: the model's network is not XLNet's, or an argument is out of range.
      DataError: the model or the text cannot be read, the text does not have so many pieces that
        shorten it, or the output already exists.

    Example:
      >>> extend_vocabulary("runs/general", ["corpus/*.txt"], "runs/extended", 2000)["vocab_size"]
      34000
    """
    from data_prep.corpus import vocabulary_extension
    from official.xlnet.checkpoints.any_format import load_tokenizer
    from official.xlnet.checkpoints.extended_model import write_extended
    from official.xlnet.checkpoints.source import open_source

    sampling = SampleOptions(**options)
    with new_folder(output) as folder:
        source = open_source(model)
        require_one_of("model.network", source.config.model.network, ("xlnet",))
        tokenizer = load_tokenizer(model)
        sampling = dataclasses.replace(sampling, keep_whitespace=tokenizer.keep_whitespace)
        sample = read_sample(inputs, sampling, tokenizer.lowercase, tokenizer.keep_accents)
        extension = vocabulary_extension.extend_vocabulary(tokenizer, sample, num_pieces)
        write_extended(
            folder, source, extension.model_proto, extension.replaced, extension.log_share
        )
    processor = sentencepiece.SentencePieceProcessor(model_proto=extension.model_proto)
    return {
        "vocab_size": tokenizer.vocab_size + num_pieces,
        "coverage": sample.coverage(processor),
        "new_pieces": num_pieces,
        "tokens_before": extension.tokens_before,
        "tokens_after": extension.tokens_after,
    }
