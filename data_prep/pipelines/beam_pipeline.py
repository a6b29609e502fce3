"""The two passes of a preparation as Apache Beam pipelines, for many machines.

    pass 1    shards → Reshuffle → write_token_files
    (here)    which documents are held out, how long lanes are
    pass 2    lanes → Reshuffle → write_lane

The elements are small: text, tokens and records are in files. Input and output directories must
be on a file system that all machines share, under the same names. A worker may die at any moment
and its elements may run again elsewhere, or twice: every file is written atomically and holds the
same bytes whoever writes it, and what its checksum shows to be done is not done again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions

from data_prep.atomic import read_json, write_json
from data_prep.pipelines import job as jobs
from data_prep.records.lane_files import write_lane
from data_prep.records.token_files import write_token_files
from data_prep.settings import Settings
from official.xlnet.errors import DataError

_DASK_RUNNER = "apache_beam.runners.dask.dask_runner.DaskRunner"


def prepare_on_beam(
    inputs: Sequence[str],
    vocab: str,
    config: Any,
    output_dir: str,
    *,
    beam_options: Sequence[str],
    **options: Any,
) -> dict[str, int]:
    """Writes a data set, as `prepare` does and with the same bytes, on a Beam runner.

    Args:
      inputs: see `prepare`; on a file system that all workers share.
      vocab: see `prepare`.
      config: see `prepare`.
      output_dir: see `prepare`; on a file system that all workers share.
      beam_options: command-line options of Beam and its runner, e.g.
        `["--runner=DaskRunner", "--dask_client_address=tcp://scheduler:8786"]`.
      **options: see `prepare`.

    Returns:
      What `prepare` returns, but for how much was found done.

    Raises:
      DataError: text, vocabulary, settings or output directory cannot be used.
    """
    settings = Settings.from_config(config.data, **options)
    job = jobs.start(inputs, vocab, settings, output_dir)
    if job.is_finished:
        return jobs.figures(output_dir)
    _run(write_token_files, jobs.shard_tasks(job), job.work_dir, beam_options)
    plan = jobs.plan_lanes(job)
    _run(write_lane, jobs.lane_tasks(job, plan), job.work_dir, beam_options)
    return jobs.finish(job, plan)


class _Call(beam.DoFn):
    """Calls `function(*task, report)`; counts what it reports and did."""

    def __init__(self, function: Callable[..., dict[str, Any]], work_dir: str):
        self._function = function
        self._work_dir = work_dir

    def process(self, task: tuple) -> None:
        """Leaves the result in the work directory, or the user's mistake, which is final."""
        name = self._function.__name__
        try:
            note = self._function(*task, _counter(f"{name}_progress").inc)
        except DataError as error:  # Beam would run the task again and again.
            _counter("errors").inc()
            write_json(_error_path(self._work_dir), str(error), self._work_dir)
            return
        _counter(f"{name}_done").inc()
        for what, number in note.get("counts", {}).items():
            _counter(what).inc(number)


def _run(
    function: Callable[..., dict[str, Any]],
    tasks: Sequence[tuple],
    work_dir: str,
    beam_options: Sequence[str],
) -> None:
    """Runs one pass to its end."""
    # Beam knows this one by its full name only.
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
    pipeline.run().wait_until_finish()
    if (sentence := read_json(_error_path(work_dir))) is not None:
        os.unlink(_error_path(work_dir))
        raise DataError(sentence)


def _error_path(work_dir: str) -> str:
    return os.path.join(work_dir, "error.json")


def _counter(name: str) -> Any:
    return beam.metrics.Metrics.counter("xlnet", name)
