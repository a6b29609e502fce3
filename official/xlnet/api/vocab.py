"""`vocab`: a vocabulary of text, or a model with pieces of a domain in its vocabulary."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any

from data_prep.settings import MAX_VOCAB_SIZE, OnBadUtf8, SampleOptions
from official.xlnet.api.verbs import PREPARE, register_verb
from official.xlnet.configs.validation import require
from official.xlnet.data.lost_rows import MaxLost
from official.xlnet.files.arguments import COMMAS, AnyOutputDirectory, AnyPath, DataFrame
from official.xlnet.files.public import public
from official.xlnet.files.schema import Range


@register_verb("vocab", group=PREPARE, counts={"vocab_size": "pieces"})
@public(inputs="input", output_dir="output")
def train_vocabulary(
    input: AnyPath | Annotated[Sequence[AnyPath], COMMAS] | DataFrame,
    output: AnyOutputDirectory,
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
        normalized = "no such setting with extend, as the configuration of the model decides"
        require(not lowercase, "lowercase", normalized, lowercase)
        require(not keep_accents, "keep_accents", normalized, keep_accents)
        require(not keep_whitespace, "keep_whitespace", normalized, keep_whitespace)
    num_pieces = int(size) if re.fullmatch(pattern, str(size)) else -1
    expected = f"{expected}, from {least} to {MAX_VOCAB_SIZE}"
    require(least <= num_pieces <= MAX_VOCAB_SIZE, "size", expected, size)
    if extend is not None:
        from official.xlnet.jobs.vocabulary import extend_vocabulary

        return extend_vocabulary(extend, input, output, num_pieces, **options)
    from data_prep.corpus.vocabulary import write_trained

    sampling = SampleOptions(keep_whitespace=keep_whitespace, **options)
    return write_trained(input, output, num_pieces, sampling, lowercase, keep_accents)
