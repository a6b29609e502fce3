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
from collections.abc import Callable, Sequence
from typing import Any

from absl import logging

from data_prep.corpus.corpus import Paths, list_of_paths
from data_prep.pipelines import job as jobs
from data_prep.pipelines.local_workers import local_workers
from data_prep.records.lane_files import write_lane
from data_prep.records.token_files import write_token_files
from data_prep.settings import Settings
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.files.arguments import checks_arguments
from official.xlnet.files.locks import only_writer
from official.xlnet.runtime.cores import num_cores


@checks_arguments("inputs", "vocab", "config", "output_dir", num_workers=1)
def prepare(
    inputs: Paths,
    vocab: str,
    config: str | XLNetConfig,
    output_dir: str,
    *,
    overrides: Sequence[str] = (),
    num_workers: int | None = None,
    progress: bool = False,
    beam_options: Sequence[str] | None = None,
    format: str = Settings.format,
    text_field: str = Settings.text_field,
    on_bad_utf8: str = Settings.on_bad_utf8,
    document_start: str = Settings.document_start,
    max_lost: float = Settings.max_lost,
    min_words: int = Settings.min_words,
    drop_low_quality: bool = Settings.drop_low_quality,
    drop_duplicates: bool = Settings.drop_duplicates,
    allow_fewer_lanes: bool = Settings.allow_fewer_lanes,
    compress: bool = Settings.compress,
    heldout_inputs: Paths = (),
) -> dict[str, int]:
    """Prepares a pre-training data set from raw text.

    Args:
      inputs: path, or paths: file names, glob patterns or `tfds:NAME:SPLIT`; or a pandas data frame
        with a column `text` (texts in Python: `pandas.DataFrame({"text": texts})`).
      vocab: a SentencePiece model, or a directory that contains `spiece.model`.
      config: the configuration, or its YAML file; uses its `data` section.
      output_dir: directory of the data set; created if it does not exist. A complete data set
        with the same settings is not changed, an incomplete one is resumed.
      overrides: `key=value` strings; see `XLNetConfig.load`.
      num_workers: number of worker processes; by default, the number of CPU cores.
      progress: whether to show progress bars, on a terminal or in a notebook.
      beam_options: command-line options of Apache Beam and its runner, to run on workers of Beam;
        the input and the output are then in a bucket, or on a file system that all workers mount:
        `["--runner=DaskRunner", "--dask_client_address=tcp://scheduler:8786"]`, for example.
      format: input format, a name in `corpus.formats.TEXT_FORMATS`; `auto` detects it per file.
      text_field: JSON field, Parquet column or TFDS feature that contains the text.
      on_bad_utf8: handling of invalid UTF-8: `error`, or `replace` by U+FFFD.
      document_start: regular expression of the beginning of a document's first line, in plain
        text. Default: blank lines separate documents.
      max_lost: largest share of the records that may be unreadable or without text; they are left
        out and counted.
      min_words: minimum number of words per document; shorter documents are dropped.
      drop_low_quality: whether to drop documents that fail the quality heuristics.
      drop_duplicates: whether to drop exact duplicates of documents.
      allow_fewer_lanes: whether to write fewer lanes than configured for a small corpus.
      compress: whether to compress record files with gzip.
      heldout_inputs: as `inputs`, text that is held out in place of `data.heldout_fraction` of the
        corpus; copies of its documents are dropped from training.

    Returns:
      A dictionary of `documents`, `tokens`, `windows`, `dropped_tokens` and `heldout_windows`;
      counts of text read, dropped and repaired; and, unless the data set was already complete or
      Beam made it, `resumed_shards` and `resumed_lanes`: parts that an earlier run had completed.

    Raises:
      DataError: the text, vocabulary, settings, output directory or Beam options are invalid.
      ConfigError: `model.vocab_size` is smaller than the vocabulary.
      OSError: a file cannot be read or written, e.g. because the disk is full.

    Example:
      >>> prepare(["corpus/*.txt"], "runs/vocab", "configs/tiny.yaml", "runs/data")["documents"]
      1832
    """
    config = _configuration(config, overrides)
    inputs = list_of_paths(inputs)
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
    heldout = list_of_paths(heldout_inputs)
    job = jobs.describe(inputs, vocab, settings, output_dir, config.model, heldout)
    if job.is_finished():  # Without the lock: the directory may be read-only.
        return jobs.data_set_counts(output_dir)
    with only_writer(output_dir):
        jobs.open_work_dir(job)
        if beam_options is not None:
            from data_prep.pipelines.beam_workers import run_on_beam

            return _run_passes(job, functools.partial(run_on_beam, job.work_dir, beam_options))
        paths = [*inputs, *heldout, vocab, output_dir]
        if job.is_read_here or any(path.lower().startswith("memory://") for path in paths):
            num_workers = 1  # No other process would see the files, or import the reader.
        with local_workers(num_workers or num_cores(), progress) as run:
            return _run_passes(job, run)


def _configuration(config: str | XLNetConfig, overrides: Sequence[str]) -> XLNetConfig:
    if isinstance(config, str):
        return XLNetConfig.load(config, list(overrides))
    return config.changed(overrides) if overrides else config


def _run_passes(job: jobs.Job, run: Callable[..., list[dict[str, Any]]]) -> dict[str, int]:
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
