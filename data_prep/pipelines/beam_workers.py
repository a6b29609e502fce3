"""Workers on Apache Beam for the passes of data preparation, each as a pipeline.

    tasks → Reshuffle → write_token_files or write_lane

The elements are task descriptions; text, tokens and records are stored in files. All machines need
access to the input and output directories under the same paths or URLs. Tasks are idempotent, so
workers may fail and tasks may be retried or run twice: files are deterministic and written
atomically, and tasks whose output has the recorded checksum are skipped.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from typing import Any

import apache_beam as beam
from apache_beam.options.pipeline_options import DirectOptions, PipelineOptions

from official.xlnet.errors import DataError
from official.xlnet.files import file_system
from official.xlnet.files.json_files import read_json, write_json

_DASK_RUNNER = "apache_beam.runners.dask.dask_runner.DaskRunner"


def run_on_beam(
    work_dir: str,
    beam_options: Sequence[str],
    function: Callable[..., dict[str, Any]],
    tasks: Sequence[tuple],
    **bar: Any,
) -> list[dict[str, Any]]:
    """Runs one pass, as the function that `local_workers` yields, without a bar or results.

    Args:
      work_dir: directory for the message of a user error.
      beam_options: see `prepare`.
      function: see `local_workers`.
      tasks: see `local_workers`.
      **bar: not used.
    """
    pipeline = build_pipeline(function, tasks, work_dir, beam_options)
    with _errors_of_processes(pipeline):
        pipeline.run().wait_until_finish()
    if file_system.exists(_error_path(work_dir)):
        message = read_json(_error_path(work_dir))
        file_system.remove(_error_path(work_dir))
        raise DataError(message)
    return []


def _errors_of_processes(pipeline: beam.Pipeline) -> contextlib.AbstractContextManager[None]:
    """Context manager in which a killed process is an error, where Beam would wait for it."""
    # Only DirectRunner reads this option.
    mode = pipeline.options.view_as(DirectOptions).direct_running_mode
    if mode != "multi_processing":
        return contextlib.nullcontext()
    # Uses private names of Beam, which other runners and modes do not depend on.
    from data_prep.pipelines.beam_processes import killed_process_errors

    return killed_process_errors()


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
      beam_options: see `prepare`.

    Raises:
      DataError: Beam does not know the options.
    """
    # Beam accepts this runner only by its full name.
    dask_runner = f"--runner={_DASK_RUNNER}"
    beam_options = [
        dask_runner if option == "--runner=DaskRunner" else option for option in beam_options
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
        for name, count in completion.get("counts", {}).items():
            _counter(name).inc(count)


def _error_path(work_dir: str) -> str:
    return os.path.join(work_dir, "error.json")


def _counter(name: str) -> Any:
    return beam.metrics.Metrics.counter("xlnet", name)
