"""Trains a SentencePiece vocabulary on text.

Writes spiece.model, with the same special ids as the published vocabularies.
"""

from __future__ import annotations

from typing import Any

from absl import flags

from data_prep.corpus.vocabulary import train_vocabulary
from data_prep.settings import FORMATS

FLAGS = flags.FlagValues()
_INPUT = flags.DEFINE_list(
    "input",
    None,
    "Files, glob patterns or tfds:NAME:SPLIT, separated by commas.",
    required=True,
    flag_values=FLAGS,
)
_OUTPUT = flags.DEFINE_string(
    "output", None, "Output directory for spiece.model.", required=True, flag_values=FLAGS
)
_SIZE = flags.DEFINE_integer(
    "size",
    32000,
    "Vocabulary size, including special tokens.",
    lower_bound=18,
    upper_bound=2**21,
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


def run() -> dict[str, Any]:
    """Trains the vocabulary; returns `vocab_size` and `coverage` (fraction of characters)."""
    return train_vocabulary(
        _INPUT.value,
        _OUTPUT.value,
        _SIZE.value,
        lowercase=_LOWERCASE.value,
        keep_accents=_KEEP_ACCENTS.value,
        sample_bytes=_SAMPLE_BYTES.value,
        seed=_SEED.value,
        progress=True,
        format=_FORMAT.value,
        text_field=_TEXT_FIELD.value,
        on_bad_utf8=_ON_BAD_UTF8.value,
    )
