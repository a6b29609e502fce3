"""Worker processes of this machine for the passes of data preparation."""

from __future__ import annotations

import concurrent.futures
import contextlib
import functools
import multiprocessing
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from absl import logging

from official.xlnet.errors import DataError
from official.xlnet.runtime.progress import counting

_POLL_SECONDS = 0.2  # Interval of progress updates.


Results = list[dict[str, Any]]


@contextlib.contextmanager
def local_workers(num_workers: int, progress: bool) -> Iterator[Callable[..., Results]]:
    """Context manager of a pool of worker processes; with one, tasks run in the current process.

    So they do where processes cannot share memory, e.g. in a container without `/dev/shm`.

    Workers are spawned instead of forked, so they do not inherit TensorFlow's memory and threads.
    They report progress through a counter in shared memory.

    Args:
      num_workers: number of processes.
      progress: whether to show a progress bar for each pass, on a terminal or in a notebook.

    Yields:
      A function (function, tasks, **bar) that runs `function(*task, report)` for every task and
      returns the results in order:
        function: what to do for a task, with a progress callback as its last argument.
        tasks: arguments of `function`, except the last one.
        **bar: see `counting`.
    """
    context, pool, done = multiprocessing.get_context("spawn"), None, None
    with contextlib.ExitStack() as stack:
        if num_workers > 1:
            try:
                done = context.Value("q", 0)
                pool = concurrent.futures.ProcessPoolExecutor(
                    num_workers, context, initializer=_start_worker, initargs=(done,)
                )
                stack.callback(pool.shutdown, cancel_futures=True)
                stack.callback(setattr, done, "value", -sys.maxsize)  # Ends tasks, see `_report`.
            except OSError as error:
                logging.warning("no worker processes, as they cannot share memory: %s", error)
        yield functools.partial(_run, pool, done, progress)


def _run(
    pool: concurrent.futures.Executor | None,
    counter: Any,
    progress: bool,
    function: Callable[..., dict[str, Any]],
    tasks: Sequence[tuple],
    **bar: Any,
) -> Results:
    with counting(progress, **bar) as add:
        if pool is None:
            return [function(*task, add) for task in tasks]
        counter.value = num_done = 0
        with _without_main_module():
            futures = [pool.submit(_call, function, task) for task in tasks]
        pending = set(futures)
        try:
            while pending:
                done, pending = concurrent.futures.wait(
                    pending, _POLL_SECONDS, concurrent.futures.FIRST_EXCEPTION
                )
                num_new = counter.value - num_done
                num_done += num_new
                add(num_new)
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


def _report(num_done: int) -> None:
    with _progress.get_lock():
        if _progress.value < 0:
            raise concurrent.futures.CancelledError  # The command has ended.
        _progress.value += num_done
