"""Converts raw text to a data set of pre-training records.

Running the same command again resumes an interrupted run.
"""

from __future__ import annotations

import functools
from typing import Any

from absl import flags

from data_prep.pipelines.prepare import prepare
from data_prep.settings import FORMATS
from official.xlnet.checkpoints.any_format import load_config
from official.xlnet.files import file_system
from official.xlnet.files.arguments import split_options
from official.xlnet.files.staging import on_local_disk
from official.xlnet.runtime.extras import require_extra

FLAGS = flags.FlagValues()
_INPUT = flags.DEFINE_list(
    "input",
    None,
    "Files, glob patterns or tfds:NAME:SPLIT, separated by commas.",
    required=True,
    flag_values=FLAGS,
)
_VOCAB = flags.DEFINE_string(
    "vocab",
    None,
    "spiece.model, or a directory that contains it.",
    required=True,
    flag_values=FLAGS,
)
_CONFIG = flags.DEFINE_string(
    "config", None, "Configuration: YAML file or model directory.", required=True, flag_values=FLAGS
)
_OUTPUT = flags.DEFINE_string(
    "output", None, "Output directory of the data set.", required=True, flag_values=FLAGS
)
_SET = flags.DEFINE_multi_string(
    "set", [], "Configuration override key=value; may be repeated.", flag_values=FLAGS
)
_NUM_WORKERS = flags.DEFINE_integer(
    "num_workers",
    None,
    "Number of worker processes; default: number of CPU cores.",
    lower_bound=1,
    upper_bound=1024,
    flag_values=FLAGS,
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
_DOCUMENT_START = flags.DEFINE_string(
    "document_start",
    "",
    "Regular expression of the beginning of a document's first line, in plain text; default: blank "
    "lines separate documents.",
    flag_values=FLAGS,
)
_MIN_WORDS = flags.DEFINE_integer(
    "min_words",
    0,
    "Drop documents with fewer words.",
    lower_bound=0,
    upper_bound=2**31 - 1,
    flag_values=FLAGS,
)
_DROP_LOW_QUALITY = flags.DEFINE_bool(
    "drop_low_quality", False, "Drop documents that fail the quality heuristics.", flag_values=FLAGS
)
_DROP_DUPLICATES = flags.DEFINE_bool(
    "drop_duplicates", False, "Drop exact duplicates of documents.", flag_values=FLAGS
)
_ALLOW_FEWER_LANES = flags.DEFINE_bool(
    "allow_fewer_lanes",
    False,
    "Write fewer lanes if the corpus is too small for data.num_lanes.",
    flag_values=FLAGS,
)
_COMPRESS = flags.DEFINE_bool(
    "compress", False, "Compress record files with gzip.", flag_values=FLAGS
)
_RUNNER = flags.DEFINE_string(
    "runner",
    None,
    "Apache Beam runner, e.g. DaskRunner; default: local processes.",
    flag_values=FLAGS,
)
_BEAM_OPTIONS = flags.DEFINE_string(
    "beam_options", "", "Command-line options of Beam and its runner.", flag_values=FLAGS
)


@on_local_disk(FLAGS, reads=["config"])
def run() -> dict[str, Any]:
    """Prepares the data set; returns counts of documents, tokens, windows and dropped text.

    `unknown_share` is the share of `<unk>` in all tokens.

    And, if the data set is not in a bucket, `targets_per_window`, the mean number of tokens that
    the configuration predicts in a window, and `windows_without_targets`, the share of windows in
    which it predicts none.
    """
    if _RUNNER.value:
        require_extra("apache_beam", "beam", f"--runner={_RUNNER.value}")
        if _RUNNER.value == "DaskRunner":
            require_extra("distributed", "dask", f"--runner={_RUNNER.value}")
        from data_prep.pipelines.beam_pipeline import prepare_on_beam

        beam_options = [
            f"--runner={_RUNNER.value}",
            *split_options(_BEAM_OPTIONS.value, "beam_options"),
        ]
        run_passes = functools.partial(prepare_on_beam, beam_options=beam_options)
    else:
        run_passes = functools.partial(prepare, num_workers=_NUM_WORKERS.value, progress=True)
    config = load_config(_CONFIG.value, _SET.value)
    counts: dict[str, Any] = run_passes(
        _INPUT.value,
        _VOCAB.value,
        config,
        _OUTPUT.value,
        format=_FORMAT.value,
        text_field=_TEXT_FIELD.value,
        on_bad_utf8=_ON_BAD_UTF8.value,
        document_start=_DOCUMENT_START.value,
        max_lost=_MAX_LOST.value,
        min_words=_MIN_WORDS.value,
        drop_low_quality=_DROP_LOW_QUALITY.value,
        drop_duplicates=_DROP_DUPLICATES.value,
        allow_fewer_lanes=_ALLOW_FEWER_LANES.value,
        compress=_COMPRESS.value,
    )
    counts["unknown_share"] = round(counts["unknown_tokens"] / max(1, counts["tokens"]), 4)
    if file_system.is_remote(_OUTPUT.value):  # Only a copy of all records could be read.
        return counts
    from official.xlnet.training.target_count import targets_per_window

    return {**counts, **targets_per_window(config, _OUTPUT.value)}
