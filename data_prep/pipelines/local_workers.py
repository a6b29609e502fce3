"""Worker processes of this machine for the passes of data preparation."""

from __future__ import annotations

import concurrent.futures
import contextlib
import multiprocessing
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from absl import logging

from official.xlnet.errors import DataError
from official.xlnet.runtime.progress import progress_bar

_POLL_SECONDS = 0.2  # Interval of progress updates.


class LocalWorkers:
    """A pool of worker processes; with one worker, tasks run in the current process.

    So they do where processes cannot share memory, e.g. in a container without `/dev/shm`.

    Workers are spawned instead of forked, so they do not inherit TensorFlow's memory and threads.
    They report progress through a counter in shared memory.

    Args:
      num_workers: number of processes.
      progress: whether to show a progress bar for each pass, on a terminal or in a notebook.
    """

    def __init__(self, num_workers: int, progress: bool):
        context = multiprocessing.get_context("spawn")
        self._progress = progress
        self._pool = None
        if num_workers > 1:
            try:
                self._done = context.Value("q", 0)
                self._pool = concurrent.futures.ProcessPoolExecutor(
                    num_workers, context, initializer=_start_worker, initargs=(self._done,)
                )
            except OSError as error:
                logging.warning("no worker processes, as they cannot share memory: %s", error)

    def __enter__(self) -> LocalWorkers:
        return self

    def __exit__(self, *error: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def run(
        self, function: Callable[..., dict[str, Any]], tasks: Sequence[tuple], **bar: Any
    ) -> list[dict[str, Any]]:
        """Runs `function(*task, report)` for every task; returns the results in order.

        Args:
          function: what to do for a task, with a progress callback as its last argument.
          tasks: arguments of `function`, except the last one.
          **bar: see `progress_bar`.
        """
        with progress_bar(self._progress, **bar) as shown:
            if self._pool is None:
                return [function(*task, shown.update) for task in tasks]
            self._done.value = 0
            with _without_main_module():
                futures = [self._pool.submit(_call, function, task) for task in tasks]
            pending = set(futures)
            try:
                while pending:
                    done, pending = concurrent.futures.wait(
                        pending, _POLL_SECONDS, concurrent.futures.FIRST_EXCEPTION
                    )
                    shown.update(self._done.value - shown.n)
                    for future in done:
                        future.result()
            except BrokenProcessPool:
                raise DataError(
                    "a worker process was killed, possibly because it ran out of memory; run the "
                    "same command again to resume, with a smaller --num_workers if necessary"
                ) from None
            return [future.result() for future in futures]


@contextlib.contextmanager
def _without_main_module() -> Iterator[None]:
    """Within it, processes that start do not import the main module, which they do not need.

    In a script without `if __name__ == "__main__":` it would call `prepare` again.
    """
    main: dict[str, Any] = vars(sys.modules["__main__"])
    saved: dict[str, Any] = {
        name: main.pop(name) for name in ("__file__", "__spec__") if name in main
    }
    main["__spec__"] = None
    try:
        yield
    finally:
        main.update(saved)


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
