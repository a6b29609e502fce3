"""Turns text into a data set of pre-training records.

A preparation that was stopped goes on where it was when the same command runs again.
"""

from __future__ import annotations

import functools
import shlex
from typing import Any

from absl import flags

from data_prep.pipelines.prepare import prepare
from data_prep.settings import FORMATS
from official.xlnet.configs.experiment import XLNetConfig

FLAGS = flags.FlagValues()
_INPUT = flags.DEFINE_list(
    "input", None, "Files, patterns or tfds:NAME:SPLIT.", required=True, flag_values=FLAGS
)
_VOCAB = flags.DEFINE_string(
    "vocab", None, "spiece.model or the directory that holds it.", required=True, flag_values=FLAGS
)
_CONFIG = flags.DEFINE_string(
    "config", None, "YAML file or model directory.", required=True, flag_values=FLAGS
)
_OUTPUT = flags.DEFINE_string(
    "output", None, "Directory of the data set.", required=True, flag_values=FLAGS
)
_SET = flags.DEFINE_multi_string(
    "set", [], "key=value: overrides a key of the configuration.", flag_values=FLAGS
)
_NUM_WORKERS = flags.DEFINE_integer(
    "num_workers", None, "Processes; default: all processors.", flag_values=FLAGS
)
_FORMAT = flags.DEFINE_enum("format", "auto", FORMATS, "Format of the files.", flag_values=FLAGS)
_TEXT_FIELD = flags.DEFINE_string(
    "text_field", "text", "Field or column that holds the text.", flag_values=FLAGS
)
_ON_BAD_UTF8 = flags.DEFINE_enum(
    "on_bad_utf8", "error", ["error", "replace"], "What to do about it.", flag_values=FLAGS
)
_MIN_WORDS = flags.DEFINE_integer(
    "min_words", 0, "Drop documents with fewer words.", flag_values=FLAGS
)
_DROP_LOW_QUALITY = flags.DEFINE_bool(
    "drop_low_quality", False, "Drop documents that are no prose.", flag_values=FLAGS
)
_DROP_DUPLICATES = flags.DEFINE_bool(
    "drop_duplicates", False, "Keep only the first of equal documents.", flag_values=FLAGS
)
_ALLOW_FEWER_LANES = flags.DEFINE_bool(
    "allow_fewer_lanes", False, "Let a small corpus give fewer lanes.", flag_values=FLAGS
)
_COMPRESS = flags.DEFINE_bool(
    "compress", False, "Compress record files with gzip.", flag_values=FLAGS
)
_RUNNER = flags.DEFINE_string(
    "runner", None, "Apache Beam runner, e.g. DaskRunner; default: no Beam.", flag_values=FLAGS
)
_BEAM_OPTIONS = flags.DEFINE_string(
    "beam_options", "", "Options of Beam and its runner, as on a command line.", flag_values=FLAGS
)


def run() -> dict[str, Any]:
    """Returns the counts of documents, tokens and windows, and of what was dropped."""
    if _RUNNER.value:
        from data_prep.pipelines.beam_pipeline import prepare_on_beam

        beam_options = [f"--runner={_RUNNER.value}", *shlex.split(_BEAM_OPTIONS.value)]
        run_passes = functools.partial(prepare_on_beam, beam_options=beam_options)
    else:
        run_passes = functools.partial(prepare, num_workers=_NUM_WORKERS.value, progress=True)
    return run_passes(
        _INPUT.value,
        _VOCAB.value,
        XLNetConfig.load(_CONFIG.value, _SET.value),
        _OUTPUT.value,
        format=_FORMAT.value,
        text_field=_TEXT_FIELD.value,
        on_bad_utf8=_ON_BAD_UTF8.value,
        min_words=_MIN_WORDS.value,
        drop_low_quality=_DROP_LOW_QUALITY.value,
        drop_duplicates=_DROP_DUPLICATES.value,
        allow_fewer_lanes=_ALLOW_FEWER_LANES.value,
        compress=_COMPRESS.value,
    )
