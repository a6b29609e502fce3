"""Trains a SentencePiece vocabulary on text, or extends that of a model.

Writes spiece.model, with the same special ids as the published vocabularies. With --extend=MODEL
and --size=+N, writes a model directory instead: MODEL with N new pieces of the text in its
vocabulary, whose embeddings start from the pieces that they replace.
"""

from __future__ import annotations

import re
from typing import Any

from absl import flags

from data_prep.corpus.vocabulary import MAX_VOCAB_SIZE, train_vocabulary
from data_prep.settings import FORMATS
from official.xlnet.errors import ConfigError
from official.xlnet.files.staging import on_local_disk

FLAGS = flags.FlagValues()
_INPUT = flags.DEFINE_list(
    "input",
    None,
    "Files, glob patterns or tfds:NAME:SPLIT, separated by commas.",
    required=True,
    flag_values=FLAGS,
)
_OUTPUT = flags.DEFINE_string(
    "output",
    None,
    "Output directory for spiece.model; with --extend, for the model: must not exist or be empty.",
    required=True,
    flag_values=FLAGS,
)
_SIZE = flags.DEFINE_string(
    "size",
    "32000",
    "Vocabulary size, including special tokens; with --extend, +N: number of pieces to add.",
    flag_values=FLAGS,
)
_EXTEND = flags.DEFINE_string(
    "extend",
    None,
    "Model to extend: a model directory, HF folder or TF1 release.",
    flag_values=FLAGS,
)
_LOWERCASE = flags.DEFINE_bool(
    "lowercase",
    False,
    "Lower-case the text; requires data.lowercase in the configuration.",
    flag_values=FLAGS,
)
_KEEP_ACCENTS = flags.DEFINE_bool(
    "keep_accents",
    False,
    "Keep accents; requires data.keep_accents in the configuration.",
    flag_values=FLAGS,
)
_SAMPLE_BYTES = flags.DEFINE_integer(
    "sample_bytes",
    100_000_000,
    "Approximate amount of text to sample for training, in bytes.",
    lower_bound=1,
    upper_bound=2**62,
    flag_values=FLAGS,
)
_SEED = flags.DEFINE_integer(
    "seed", 0, "Random seed of the sample.", lower_bound=0, upper_bound=2**32 - 1, flag_values=FLAGS
)
_FORMAT = flags.DEFINE_enum(
    "format", "auto", FORMATS, "Format of the input files.", flag_values=FLAGS
)
_TEXT_FIELD = flags.DEFINE_string(
    "text_field", "text", "Field, column or feature that contains the text.", flag_values=FLAGS
)
_ON_BAD_UTF8 = flags.DEFINE_enum(
    "on_bad_utf8",
    "error",
    ["error", "replace"],
    "Handling of invalid UTF-8: error, or replace by U+FFFD.",
    flag_values=FLAGS,
)
_MAX_LOST = flags.DEFINE_float(
    "max_lost",
    0.05,
    "Largest share of records that may be unreadable or without text: these are left out and "
    "counted; more are an error.",
    lower_bound=0,
    upper_bound=1,
    flag_values=FLAGS,
)


def run() -> dict[str, Any]:
    """Trains or extends a vocabulary.

    Returns:
      `vocab_size` and `coverage` (fraction of characters); with --extend also what
      `official.xlnet.api.vocabulary.extend_vocabulary` returns.
    """
    if _EXTEND.value is not None:
        return _extend()
    return train_vocabulary(
        _INPUT.value,
        _OUTPUT.value,
        _size(r"\d{1,7}", 18, "a vocabulary size (+N goes with --extend=MODEL)"),
        lowercase=_LOWERCASE.value,
        keep_accents=_KEEP_ACCENTS.value,
        **_options(),
    )


@on_local_disk(FLAGS, reads=["extend"], writes_directory=["output"])
def _extend() -> dict[str, Any]:
    num_pieces = _size(r"\+\d{1,7}", 1, "the number of pieces to add with --extend, as +N")
    for flag in (_LOWERCASE, _KEEP_ACCENTS):
        if flag.present:
            raise ConfigError(
                f"--{flag.name}: expected no such flag with --extend: text is normalized as the "
                "configuration of the model says"
            )
    from official.xlnet.api.vocabulary import extend_vocabulary

    return extend_vocabulary(_EXTEND.value, _INPUT.value, _OUTPUT.value, num_pieces, **_options())


def _size(pattern: str, least: int, expected: str) -> int:
    """The value of --size, which has to match a pattern and be at least `least`."""
    size = int(_SIZE.value) if re.fullmatch(pattern, _SIZE.value) else -1
    if not least <= size <= MAX_VOCAB_SIZE:
        raise ConfigError(
            f"--size: expected {expected}, from {least} to {MAX_VOCAB_SIZE}, got {_SIZE.value!r}"
        )
    return size


def _options() -> dict[str, Any]:
    return {
        "sample_bytes": _SAMPLE_BYTES.value,
        "seed": _SEED.value,
        "progress": True,
        "format": _FORMAT.value,
        "text_field": _TEXT_FIELD.value,
        "on_bad_utf8": _ON_BAD_UTF8.value,
        "max_lost": _MAX_LOST.value,
    }
