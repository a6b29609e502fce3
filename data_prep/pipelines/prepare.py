"""Data preparation on one machine: raw text to a data set of pre-training records.

    output/train-00000-of-00016.tfrecord …   record files, one per lane
    output/spiece.model                      the vocabulary
    output/manifest.json                     metadata; written last, marks the data set as complete
    output/.prepare/                         intermediate files; removed at the end

The output depends only on the text, vocabulary, configuration and options, not on the number of
workers. Running the same command again resumes an interrupted run.
"""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures.process import BrokenProcessPool
from typing import TYPE_CHECKING, Any

import tqdm

from data_prep.corpus.corpus import Paths, list_of_paths
from data_prep.pipelines import job as jobs
from data_prep.records.lane_files import write_lane
from data_prep.records.token_files import write_token_files
from data_prep.settings import Settings
from official.xlnet.data.lost_rows import MAX_LOST
from official.xlnet.errors import DataError
from official.xlnet.files import file_system
from official.xlnet.files.locks import only_writer
from official.xlnet.runtime.cores import num_cores

if TYPE_CHECKING:  # Importing it loads TensorFlow, which workers do not need.
    from official.xlnet.configs.experiment import XLNetConfig

_POLL_SECONDS = 0.2  # Interval of progress updates.


def prepare(
    inputs: Paths,
    vocab: str | os.PathLike,
    config: XLNetConfig,
    output_dir: str | os.PathLike,
    *,
    num_workers: int | None = None,
    progress: bool = False,
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
    """Prepares a pre-training data set from raw text.

    Args:
      inputs: path, or paths: file names, glob patterns or `tfds:NAME:SPLIT`.
      vocab: a SentencePiece model, or a directory that contains `spiece.model`.
      config: the configuration; uses its `data` section.
      output_dir: directory of the data set; created if it does not exist. A complete data set
        with the same settings is not changed, an incomplete one is resumed.
      num_workers: number of worker processes; by default, the number of CPU cores.
      progress: whether to show progress bars, if standard error is a terminal.
      format: input format, one of `settings.FORMATS`; `auto` detects it per file.
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

    Returns:
      A dictionary of `documents`, `tokens`, `windows`, `dropped_tokens` and `heldout_windows`;
      counts of text read, dropped and repaired; and, unless the data set was already complete,
      `resumed_shards` and `resumed_lanes`: parts that an earlier run had completed.

    Raises:
      DataError: the text, vocabulary, settings or output directory is invalid.
      ConfigError: `model.vocab_size` is smaller than the vocabulary.
      OSError: a file cannot be read or written, e.g. because the disk is full.

    Example:
      >>> config = XLNetConfig.load("configs/tiny.yaml")
      >>> prepare(["corpus/*.txt"], "runs/vocab", config, "runs/data")["documents"]
      1832
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
    if job.is_finished:  # Without the lock: the directory may be read-only.
        return jobs.data_set_counts(output_dir)
    with only_writer(output_dir):
        jobs.open_work_dir(job)
        if any(map(file_system.is_in_memory, [*inputs, vocab, output_dir])):
            num_workers = 1  # No other process would see the files.
        with _Workers(num_workers or num_cores()) as workers:
            with _bar(progress, "tokens", sum(shard.num_bytes for shard in job.shards), "B") as bar:
                shards = workers.run(write_token_files, jobs.shard_tasks(job), bar)
            plan = jobs.plan_lanes(job)
            num_windows = sum(layout.num_lanes * layout.windows_per_lane for layout in plan.layouts)
            with _bar(progress, "records", num_windows, " windows") as bar:
                lanes = workers.run(write_lane, jobs.lane_tasks(job, plan), bar)
        return {
            **jobs.finish(job, plan),
            "resumed_shards": sum(completion["resumed"] for completion in shards),
            "resumed_lanes": sum(completion["resumed"] for completion in lanes),
        }


class _Workers:
    """Pool of worker processes; with one worker, tasks run in the current process.

    Workers are spawned instead of forked, so they do not inherit TensorFlow's memory and threads.
    They report progress through a counter in shared memory.
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
        """Runs `function(*task, report)` for every task; returns the results in order."""
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
                "a worker process was killed, possibly because it ran out of memory; run the same "
                "command again to resume, with a smaller --num_workers if necessary"
            ) from None
        return [future.result() for future in futures]


_progress: Any = None  # The shared progress counter, in a worker process.


def _start_worker(counter: Any) -> None:
    global _progress
    _progress = counter
    threading.Thread(target=_exit_with_parent, daemon=True).start()


def _exit_with_parent() -> None:
    """Terminates a worker whose parent was killed; it would wait for tasks forever."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _call(function: Callable[..., dict[str, Any]], task: tuple) -> dict[str, Any]:
    return function(*task, _report)


def _report(number: int) -> None:
    with _progress.get_lock():
        _progress.value += number


def _bar(progress: bool, description: str, total: int, unit: str) -> tqdm.tqdm:
    return tqdm.tqdm(
        desc=description,
        total=total,
        unit=unit,
        unit_scale=True,
        disable=None if progress else True,  # None: show on terminals only.
    )
