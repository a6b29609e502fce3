r"""Converts raw text to a data set of pre-training records.

Running the same command again resumes an interrupted run.

Example:
  xlnet prepare --input='corpus/*.txt' --vocab=runs/vocab --config=configs/tiny.yaml \
      --output=runs/data
"""

from __future__ import annotations

from typing import Any

from data_prep.pipelines.prepare import prepare
from data_prep.settings import Settings
from official.xlnet.checkpoints.any_format import load_config
from official.xlnet.commands import (
    BEAM_OPTIONS,
    CORPUS,
    REQUIRED,
    SET,
    boolean,
    comma_list,
    config,
    flag_table,
    integer,
    string,
    values_of,
)
from official.xlnet.configs.experiment import recipe_path
from official.xlnet.errors import require_extra
from official.xlnet.files import file_system
from official.xlnet.files.arguments import split_options
from official.xlnet.files.staging import on_local_disk

FLAGS = flag_table(
    CORPUS,
    comma_list("heldout_input", [], "Text to hold out, as --input; default: a share of it."),
    string("vocab", REQUIRED, "spiece.model, or a directory that contains it."),
    config(REQUIRED),
    string("output", REQUIRED, "Output directory of the data set."),
    SET,
    integer(
        "num_workers",
        default=None,
        text="Number of worker processes; default: number of CPU cores.",
        least=1,
        most=1024,
    ),
    string(
        "document_start",
        default="",
        text="Regular expression of the beginning of a document's first line, in plain text; "
        "default: blank lines separate documents.",
    ),
    integer("min_words", 0, "Drop documents with fewer words."),
    boolean("drop_low_quality", False, "Drop documents that fail the quality heuristics."),
    boolean("drop_duplicates", False, "Drop exact duplicates of documents."),
    boolean(
        "allow_fewer_lanes",
        default=False,
        text="Write fewer lanes if the corpus is too small for data.num_lanes.",
    ),
    boolean("compress", False, "Compress record files with gzip."),
    string("runner", None, "Apache Beam runner, e.g. DaskRunner; default: local processes."),
    BEAM_OPTIONS,
)


@on_local_disk(FLAGS, reads=["config"])
def run() -> dict[str, Any]:
    """Prepares the data set; returns counts of documents, tokens, windows and dropped text.

    `unknown_share` is the share of `<unk>` in all tokens.

    And, if the data set is not in a bucket, `targets_per_window`, the mean number of tokens that
    the configuration predicts in a window, and `windows_without_targets`, the share of windows in
    which it predicts none.
    """
    beam_options = None
    if FLAGS.runner:
        require_extra("apache_beam", "beam", f"--runner={FLAGS.runner}")
        if FLAGS.runner == "DaskRunner":
            require_extra("distributed", "dask", f"--runner={FLAGS.runner}")
        options = split_options(FLAGS.beam_options, "beam_options")
        beam_options = [f"--runner={FLAGS.runner}", *options]
    experiment = load_config(recipe_path(FLAGS.config), FLAGS.set)
    counts: dict[str, Any] = prepare(
        FLAGS.input,
        FLAGS.vocab,
        experiment,
        FLAGS.output,
        num_workers=FLAGS.num_workers,
        progress=True,
        beam_options=beam_options,
        heldout_inputs=FLAGS.heldout_input,
        **values_of(FLAGS, Settings),
    )
    counts["unknown_share"] = round(counts["unknown_tokens"] / max(1, counts["tokens"]), 4)
    if file_system.is_remote(FLAGS.output):  # Only a copy of all records could be read.
        return counts
    from official.xlnet.training.run_health import targets_per_window

    return {**counts, **targets_per_window(experiment, FLAGS.output)}
