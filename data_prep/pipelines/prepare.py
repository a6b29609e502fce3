"""Data preparation: raw text to a data set of pre-training records.

    output/train-00000-of-00016.tfrecord …   record files, one per lane
    output/spiece.model                      the vocabulary
    output/manifest.json                     metadata; written last, marks the data set as complete
    output/.prepare/                         intermediate files; removed at the end

The output depends only on the text, vocabulary, configuration and options, not on the workers,
which are processes of one machine or workers of Apache Beam. Running the same command again resumes
an interrupted run.
"""

from __future__ import annotations

import functools
import shlex
from collections.abc import Callable, Sequence
from typing import Annotated, Any

from absl import logging

from data_prep.corpus.corpus import DataFrame, list_of_paths
from data_prep.pipelines import job as jobs
from data_prep.pipelines.local_workers import local_workers
from data_prep.records.lane_files import write_lane
from data_prep.records.token_files import write_token_files
from data_prep.settings import OnBadUtf8, Settings
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.data.lost_rows import MaxLost
from official.xlnet.errors import ConfigError, require_extra
from official.xlnet.files import file_system
from official.xlnet.files.arguments import COMMAS, IN_PYTHON, AnyPath, Path
from official.xlnet.files.locks import only_writer
from official.xlnet.files.public import public
from official.xlnet.files.schema import Range
from official.xlnet.runtime.cores import num_cores


@public(inputs="input", output_dir="output", overrides="set", heldout_inputs="heldout_input")
def prepare(
    input: AnyPath | Annotated[Sequence[AnyPath], COMMAS] | DataFrame,
    vocab: AnyPath,
    config: Path | XLNetConfig,
    output: AnyPath,
    *,
    set: Sequence[str] = (),
    num_workers: Annotated[int, Range(1, 1024)] | None = None,
    progress: bool = True,
    runner: str | None = None,
    beam_options: str | Annotated[Sequence[str], IN_PYTHON] | None = None,
    format: str = Settings.format,
    text_field: str = Settings.text_field,
    on_bad_utf8: OnBadUtf8 = Settings.on_bad_utf8,
    document_start: str = Settings.document_start,
    max_lost: MaxLost = Settings.max_lost,
    min_words: Annotated[int, Range(0)] = Settings.min_words,
    drop_low_quality: bool = Settings.drop_low_quality,
    drop_duplicates: bool = Settings.drop_duplicates,
    allow_fewer_lanes: bool = Settings.allow_fewer_lanes,
    compress: bool = Settings.compress,
    heldout_input: AnyPath | Annotated[Sequence[AnyPath], COMMAS] | DataFrame = (),
) -> dict[str, Any]:
    r"""Converts raw text to a data set of pre-training records.

    To resume an interrupted run, run the same command again.

    Args:
      input: files, glob patterns or tfds:NAME:SPLIT, separated by commas; in Python also a pandas
        data frame with a column `text` (texts in Python: `pandas.DataFrame({"text": texts})`).
      vocab: vocabulary, spiece.model, or a directory that contains it.
      config: configuration: YAML file or model directory; uses its section `data`.
      output: directory of the data set to create, or to resume.
      set: configuration override `key=value`, see `XLNetConfig.load`; may be repeated.
      num_workers: number of worker processes; default: the number of CPU cores.
      progress: whether to show progress bars, on a terminal or in a notebook.
      runner: Apache Beam runner, e.g. DaskRunner; default: local processes.
      beam_options: command-line options of Beam and its runner, e.g.
        `--dask_client_address=tcp://scheduler:8786`; in Python also a list of them.
      format: format of the input files, see docs/data_preparation.md, or one of --import; `auto`
        detects it per file.
      text_field: field, column or feature that contains the text.
      on_bad_utf8: handling of invalid UTF-8: `error`, or `replace` by U+FFFD.
      document_start: regular expression of the beginning of a document's first line, in plain
        text; default: blank lines separate documents.
      max_lost: maximum fraction of bad records to skip; above it, the command fails.
      min_words: drop documents with fewer words.
      drop_low_quality: drop documents that fail the quality heuristics.
      drop_duplicates: drop exact duplicates of documents.
      allow_fewer_lanes: write fewer lanes if the corpus is too small for data.num_lanes.
      compress: compress record files with gzip.
      heldout_input: text to hold out, as input; copies of its documents are dropped from training;
        default: a share of the corpus, data.heldout_fraction.

    Returns:
      A dictionary of `documents`, `tokens`, `windows`, `dropped_tokens` and `heldout_windows`;
      counts of text read, dropped and repaired; and, unless the data set was already complete or
      Beam made it, `resumed_shards` and `resumed_lanes`: parts that an earlier run had completed.
      `unknown_share` is the share of `<unk>` in all tokens.

    Raises:
      DataError: the text, vocabulary, settings, output directory or Beam options are invalid.
      ConfigError: `model.vocab_size` is smaller than the vocabulary.
      OSError: a file cannot be read or written, e.g. because the disk is full.

    Example:
      $ xlnet prepare --input='corpus/*.txt' --vocab=runs/vocab --config=configs/tiny.yaml \
          --output=runs/data

      >>> prepare(["corpus/*.txt"], "runs/vocab", "configs/tiny.yaml", "runs/data")["documents"]
      1832
    """
    if isinstance(config, str):
        config = XLNetConfig.load(config, set)
    elif set:
        config = config.changed(set)
    beam = _beam_options(runner, beam_options)
    inputs = list_of_paths(input)
    settings = Settings.from_config(
        config.data,
        format=format,
        text_field=text_field,
        on_bad_utf8=on_bad_utf8,
        document_start=document_start,
        max_lost=max_lost,
        min_words=min_words,
        drop_low_quality=drop_low_quality,
        drop_duplicates=drop_duplicates,
        allow_fewer_lanes=allow_fewer_lanes,
        compress=compress,
    )
    if config.training.batch_size > settings.num_lanes:
        logging.warning(
            "data.num_lanes: expected at least training.batch_size, %d, got %d; pre-training on "
            "these records needs --set=training.batch_size=%d or less",
            config.training.batch_size,
            settings.num_lanes,
            settings.num_lanes,
        )
    heldout = list_of_paths(heldout_input)
    job = jobs.describe(inputs, vocab, settings, output, config.model, heldout)
    if job.is_finished():  # Without the lock: the directory may be read-only.
        return jobs.data_set_counts(output)
    with only_writer(output):
        jobs.open_work_dir(job)
        if beam is not None:
            from data_prep.pipelines.beam_workers import run_on_beam

            on_beam = functools.partial(run_on_beam, job.work_dir, beam)
            return _run_passes(job, on_beam)
        paths = [*inputs, *heldout, vocab, output]
        if job.is_read_here or not all(map(file_system.is_shared, paths)):
            num_workers = 1  # Other processes cannot read the files, or import the reader.
        with local_workers(num_workers or num_cores(), progress) as run:
            return _run_passes(job, run)


def _beam_options(runner: str | None, options: str | Sequence[str] | None) -> list[str] | None:
    """Options of Beam; None for local processes."""
    if runner is None and not options:
        return None
    require_extra("apache_beam", "beam", f"runner={runner}")
    if runner == "DaskRunner":
        require_extra("distributed", "dask", f"runner={runner}")
    try:
        listed = shlex.split(options) if isinstance(options, str) else options or ()
    except ValueError as error:
        raise ConfigError(f"beam_options: expected options as in a shell: {error}") from None
    return [*([f"--runner={runner}"] if runner else []), *listed]


def _run_passes(job: jobs.Job, run: Callable[..., list[dict[str, Any]]]) -> dict[str, Any]:
    """Runs both passes, on `local_workers` or by `run_on_beam`, and writes the manifest."""
    num_bytes = sum(shard.num_bytes for shard in job.shards)
    shard_tasks = [
        (index, shard, job.settings, job.vocab_file, job.work_dir)
        for index, shard in enumerate(job.shards)
    ]
    shards = run(write_token_files, shard_tasks, desc="tokens", total=num_bytes, unit="B")
    plan = jobs.plan_lanes(job)
    num_windows = sum(layout.num_lanes * layout.windows_per_lane for layout in plan.layouts)
    lane_tasks = [
        (layout, lane, job.settings, job.token_dtype, job.work_dir, job.output_dir)
        for layout in plan.layouts
        for lane in range(layout.num_lanes)
    ]
    lanes = run(write_lane, lane_tasks, desc="records", total=num_windows, unit=" windows")
    counts = jobs.finish(job, plan)
    if shards:  # Beam does not return the results of tasks.
        counts["resumed_shards"] = sum(completion["resumed"] for completion in shards)
        counts["resumed_lanes"] = sum(completion["resumed"] for completion in lanes)
    return counts
