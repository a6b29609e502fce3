"""Raw text to a data set of pre-training records, on one machine.

    output/train-00000-of-00016.tfrecord …   lanes
    output/spiece.model                      the vocabulary
    output/manifest.json                     written last: without it there is no data set
    output/.prepare/                         work in progress; removed when the data set is whole

The bytes depend on text, vocabulary, configuration and options, never on the number of workers.
A preparation that was stopped goes on where it was when the same command runs again.
"""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures.process import BrokenProcessPool
from typing import Any

import tqdm

from data_prep.pipelines import job as jobs
from data_prep.records.lane_files import write_lane
from data_prep.records.token_files import write_token_files
from data_prep.settings import Settings
from official.xlnet.errors import DataError
from official.xlnet.runtime.cores import num_cores

_POLL_SECONDS = 0.2


def prepare(
    inputs: Sequence[str],
    vocab: str,
    config: Any,
    output_dir: str,
    *,
    num_workers: int | None = None,
    progress: bool = False,
    **options: Any,
) -> dict[str, int]:
    """Writes a data set.

    Args:
      inputs: file names, glob patterns, or `tfds:NAME:SPLIT`; see `corpus` and `readers` for
        formats.
      vocab: a SentencePiece model, or a directory that holds `spiece.model`.
      config: an `XLNetConfig`; its `data` section is used.
      output_dir: directory of the data set. One that holds the same data set already is left
        alone; one that holds a part of it is completed.
      num_workers: processes; as many as there are processors by default.
      progress: whether to show progress bars on standard error if it is a terminal.
      **options: the fields of `Settings` that are not in the configuration: `format`,
        `text_field`, `on_bad_utf8`, `min_words`, `drop_low_quality`, `drop_duplicates`,
        `allow_fewer_lanes`, `compress`.

    Returns:
      `documents`, `tokens`, `windows`, `dropped_tokens`, `heldout_windows`, and the counts of
      what was read, dropped and mended; where work was done, `resumed_shards` and
      `resumed_lanes`, how many of the parts were found done already.

    Raises:
      DataError: text, vocabulary, settings or output directory cannot be used.
      OSError: the disk is full or fails.
    """
    job = jobs.start(inputs, vocab, Settings.from_config(config.data, **options), output_dir)
    if job.is_finished:
        return jobs.figures(output_dir)
    with _Workers(num_workers or num_cores()) as workers:
        with _bar(progress, "tokens", sum(shard.num_bytes for shard in job.shards), "B") as bar:
            shards = workers.run(write_token_files, jobs.shard_tasks(job), bar)
        plan = jobs.plan_lanes(job)
        num_windows = sum(layout.num_lanes * layout.windows_per_lane for layout in plan.layouts)
        with _bar(progress, "records", num_windows, " windows") as bar:
            lanes = workers.run(write_lane, jobs.lane_tasks(job, plan), bar)
    return {
        **jobs.finish(job, plan),
        "resumed_shards": sum(note["resumed"] for note in shards),
        "resumed_lanes": sum(note["resumed"] for note in lanes),
    }


class _Workers:
    """Processes that run the passes; with one worker, the process itself.

    Workers are started afresh instead of forked: they do not inherit TensorFlow's memory and
    threads. They add up their progress in shared memory.
    """

    def __init__(self, num_workers: int):
        self._done = multiprocessing.get_context("spawn").Value("q", 0)
        self._pool = None
        if num_workers > 1:
            self._pool = concurrent.futures.ProcessPoolExecutor(
                num_workers,
                mp_context=multiprocessing.get_context("spawn"),
                initializer=_start_worker,
                initargs=(self._done,),
            )

    def __enter__(self) -> _Workers:
        return self

    def __exit__(self, *error: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def run(
        self, function: Callable[..., dict[str, Any]], tasks: Sequence[tuple], bar: tqdm.tqdm
    ) -> list[dict[str, Any]]:
        """Calls `function(*task, report)` for every task; returns the results in order."""
        if self._pool is None:
            return [function(*task, bar.update) for task in tasks]
        self._done.value = 0
        futures = [self._pool.submit(_call, function, task) for task in tasks]
        pending = set(futures)
        try:
            while pending:
                done, pending = concurrent.futures.wait(
                    pending, _POLL_SECONDS, concurrent.futures.FIRST_EXCEPTION
                )
                bar.update(self._done.value - bar.n)
                for future in done:
                    future.result()
        except BrokenProcessPool:
            raise DataError(
                "a worker process was killed, perhaps for want of memory; the same command goes "
                "on where it stopped, and --num_workers says how many run at once"
            ) from None
        return [future.result() for future in futures]


_progress: Any = None  # In a worker: the shared counter.


def _start_worker(counter: Any) -> None:
    global _progress
    _progress = counter
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Ends a worker whose parent was killed, which would wait for work for ever."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _call(function: Callable[..., dict[str, Any]], task: tuple) -> dict[str, Any]:
    return function(*task, _report)


def _report(number: int) -> None:
    with _progress.get_lock():
        _progress.value += number


def _bar(progress: bool, what: str, total: int, unit: str) -> tqdm.tqdm:
    return tqdm.tqdm(
        desc=what,
        total=total,
        unit=unit,
        unit_scale=True,
        disable=None if progress else True,  # None: shown on terminals only.
    )
