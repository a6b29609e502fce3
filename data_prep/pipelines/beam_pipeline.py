"""Distributed data preparation on Apache Beam, as two pipelines.

    pass 1       shards → Reshuffle → write_token_files
    (launcher)   assigns documents to splits and computes the length of lanes
    pass 2       lanes → Reshuffle → write_lane

The elements are task descriptions; text, tokens and records are stored in files. All machines need
access to the input and output directories under the same paths or URLs. Tasks are idempotent, so
workers may fail and tasks may be retried or run twice: files are deterministic and written
atomically, and tasks whose output has the recorded checksum are skipped.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions

from data_prep.atomic import write_json
from data_prep.corpus.corpus import Paths, list_of_paths
from data_prep.pipelines import job as jobs
from data_prep.records.lane_files import write_lane
from data_prep.records.token_files import write_token_files
from data_prep.settings import Settings
from official.xlnet.data.lost_rows import MAX_LOST
from official.xlnet.errors import DataError
from official.xlnet.files import file_system
from official.xlnet.files.json_files import read_json
from official.xlnet.files.locks import only_writer

if TYPE_CHECKING:  # Importing it loads TensorFlow, which workers do not need.
    from official.xlnet.configs.experiment import XLNetConfig

_DASK_RUNNER = "apache_beam.runners.dask.dask_runner.DaskRunner"


def prepare_on_beam(
    inputs: Paths,
    vocab: str | os.PathLike,
    config: XLNetConfig,
    output_dir: str | os.PathLike,
    *,
    beam_options: Sequence[str],
    format: str = "auto",
    text_field: str = "text",
    on_bad_utf8: str = "error",
    document_start: str = "",
    max_lost: float = MAX_LOST,
    min_words: int = 0,
    drop_low_quality: bool = False,
    drop_duplicates: bool = False,
    allow_fewer_lanes: bool = False,
    compress: bool = False,
) -> dict[str, int]:
    """Prepares a data set on a Beam runner; the output is identical to that of `prepare`.

    Args:
      inputs: see `prepare`; in a bucket, or on a file system that all workers mount.
      vocab: see `prepare`.
      config: see `prepare`.
      output_dir: see `prepare`; in a bucket, or on a file system that all workers mount.
      beam_options: command-line options of Beam and its runner, e.g.
        `["--runner=DaskRunner", "--dask_client_address=tcp://scheduler:8786"]`.
      format: see `prepare`.
      text_field: see `prepare`.
      on_bad_utf8: see `prepare`.
      document_start: see `prepare`.
      max_lost: see `prepare`.
      min_words: see `prepare`.
      drop_low_quality: see `prepare`.
      drop_duplicates: see `prepare`.
      allow_fewer_lanes: see `prepare`.
      compress: see `prepare`.

    Returns:
      The counts returned by `prepare`, without `resumed_shards` and `resumed_lanes`.

    Raises:
      DataError: the text, vocabulary, settings, output directory or Beam options are invalid.
      ConfigError: `model.vocab_size` is smaller than the vocabulary.
    """
    inputs, vocab, output_dir = list_of_paths(inputs), os.fspath(vocab), os.fspath(output_dir)
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
    job = jobs.describe(inputs, vocab, settings, output_dir, config.model)
    if job.is_finished:
        return jobs.data_set_counts(output_dir)
    with only_writer(output_dir):
        jobs.open_work_dir(job)
        _run(write_token_files, jobs.shard_tasks(job), job.work_dir, beam_options)
        plan = jobs.plan_lanes(job)
        _run(write_lane, jobs.lane_tasks(job, plan), job.work_dir, beam_options)
        return jobs.finish(job, plan)


class _Call(beam.DoFn):
    """Runs `function(*task, report)` for each task, and updates Beam counters."""

    def __init__(self, function: Callable[..., dict[str, Any]], work_dir: str):
        self._function = function
        self._work_dir = work_dir

    def process(self, task: tuple) -> None:
        """Runs a task; a user error is written to the work directory and not retried."""
        function_name = self._function.__name__
        try:
            completion = self._function(*task, _counter(f"{function_name}_progress").inc)
        except DataError as error:  # Raising it would make Beam retry the task.
            _counter("errors").inc()
            write_json(_error_path(self._work_dir), str(error), self._work_dir)
            return
        _counter(f"{function_name}_done").inc()
        for name, number in completion.get("counts", {}).items():
            _counter(name).inc(number)


def _run(
    function: Callable[..., dict[str, Any]],
    tasks: Sequence[tuple],
    work_dir: str,
    beam_options: Sequence[str],
) -> None:
    """Runs one pass and waits for it to finish."""
    build_pipeline(function, tasks, work_dir, beam_options).run().wait_until_finish()
    if file_system.exists(_error_path(work_dir)):
        message = read_json(_error_path(work_dir))
        file_system.remove(_error_path(work_dir))
        raise DataError(message)


def build_pipeline(
    function: Callable[..., dict[str, Any]],
    tasks: Sequence[tuple],
    work_dir: str,
    beam_options: Sequence[str],
) -> beam.Pipeline:
    """Builds the pipeline of one pass.

    Args:
      function: what to do for each task, with a progress callback as its last argument.
      tasks: arguments of `function`, except the last one.
      work_dir: directory for the message of a user error.
      beam_options: see `prepare_on_beam`.

    Raises:
      DataError: Beam does not know the options.
    """
    # Beam accepts this runner only by its full name.
    beam_options = [
        f"--runner={_DASK_RUNNER}" if option == "--runner=DaskRunner" else option
        for option in beam_options
    ]
    try:
        pipeline = beam.Pipeline(options=PipelineOptions(beam_options))
    except ValueError as error:
        raise DataError(f"Beam cannot use {' '.join(beam_options)}: {error}") from None
    _ = (
        pipeline
        | "Tasks" >> beam.Create(tasks)
        | "Spread" >> beam.Reshuffle()
        | function.__name__ >> beam.ParDo(_Call(function, work_dir))
    )
    return pipeline


def _error_path(work_dir: str) -> str:
    return os.path.join(work_dir, "error.json")


def _counter(name: str) -> Any:
    return beam.metrics.Metrics.counter("xlnet", name)
