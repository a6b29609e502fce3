"""Trains a SentencePiece vocabulary on text, or extends the vocabulary of a model.

Writes spiece.model, with the same special ids as the published vocabularies. With --extend=MODEL
and --size=+N, writes a model directory instead: MODEL with N new pieces of the text in its
vocabulary, whose embeddings start from the pieces that they replace.

Example:
  xlnet vocab --input='corpus/*.txt' --output=runs/vocab --size=4000
"""

from __future__ import annotations

import re
from typing import Any

from data_prep.corpus.vocabulary import MAX_VOCAB_SIZE, train_vocabulary
from data_prep.settings import SampleOptions
from official.xlnet.commands import (
    CORPUS,
    REQUIRED,
    boolean,
    flag_table,
    integer,
    seed,
    string,
    values_of,
)
from official.xlnet.configs.validation import require
from official.xlnet.errors import ConfigError
from official.xlnet.files.staging import on_local_disk

FLAGS = flag_table(
    CORPUS,
    string(
        "output",
        default=REQUIRED,
        text="Output directory for spiece.model; with --extend, for the model: must not exist or "
        "be empty.",
    ),
    string(
        "size",
        default="32000",
        text="Vocabulary size, including special tokens; with --extend, +N: number of pieces to "
        "add.",
    ),
    string("extend", None, "Model to extend: a model directory, HF folder or TF1 release."),
    boolean(
        "lowercase",
        default=False,
        text="Lower-case the text; requires data.lowercase in the configuration.",
    ),
    boolean(
        "keep_accents",
        default=False,
        text="Keep accents; requires data.keep_accents in the configuration.",
    ),
    boolean(
        "keep_whitespace",
        default=False,
        text="Keep texts as they are, with line breaks, tabs, runs of spaces, quotes and accents; "
        "the vocabulary says so to all commands.",
    ),
    integer(
        "sample_bytes",
        default=100_000_000,
        text="Approximate amount of text to sample for training, in bytes.",
        least=1,
        most=2**62,
    ),
    seed("Random seed of the sample."),
)


def run() -> dict[str, Any]:
    """Trains or extends a vocabulary.

    Returns:
      `vocab_size` and `coverage` (fraction of characters); with --extend also what
      `official.xlnet.api.vocabulary.extend_vocabulary` returns.
    """
    if FLAGS.extend is not None:
        return _extend()
    return train_vocabulary(
        FLAGS.input,
        FLAGS.output,
        _size(r"\d{1,7}", 18, "a vocabulary size (+N goes with --extend=MODEL)"),
        lowercase=FLAGS.lowercase,
        keep_accents=FLAGS.keep_accents,
        progress=True,
        **values_of(FLAGS, SampleOptions),
    )


@on_local_disk(FLAGS, reads=["extend"], writes_directory=["output"])
def _extend() -> dict[str, Any]:
    num_pieces = _size(r"\+\d{1,7}", 1, "the number of pieces to add with --extend, as +N")
    for name in ("lowercase", "keep_accents", "keep_whitespace"):
        if FLAGS[name].present:
            raise ConfigError(
                f"--{name}: expected no such flag with --extend: text is normalized as the "
                "configuration of the model says"
            )
    from official.xlnet.api.vocabulary import extend_vocabulary

    options = values_of(FLAGS, SampleOptions)
    del options["keep_whitespace"]
    return extend_vocabulary(
        FLAGS.extend, FLAGS.input, FLAGS.output, num_pieces, progress=True, **options
    )


def _size(pattern: str, least: int, expected: str) -> int:
    """The value of --size, which has to match a pattern and be at least `least`."""
    size = int(FLAGS.size) if re.fullmatch(pattern, FLAGS.size) else -1
    require(
        least <= size <= MAX_VOCAB_SIZE,
        "--size",
        f"{expected}, from {least} to {MAX_VOCAB_SIZE}",
        FLAGS.size,
    )
    return size
