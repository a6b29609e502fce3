"""Interleaved benchmarks of several implementations in separate processes: A B A B …

The speed of a shared machine drifts, so implementations take turns and are compared by the medians
of one run. Separate processes isolate their libraries and make memory attributable.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from typing import IO, Any

from absl import logging


@dataclasses.dataclass(frozen=True)
class Contestant:
    """An implementation to benchmark, with its workload.

    Attributes:
      name: name in tables.
      module: module with a function `build(**task)` that returns a `worker.Work`.
      task: JSON-serializable arguments of `build`.
    """

    name: str
    module: str
    task: dict[str, Any]


@dataclasses.dataclass
class Result:
    """Measurements of one contestant.

    Attributes:
      seconds: time of each timed run.
      values: return value of each run: the loss, or FLOP/s for the ceiling.
      warm_up_seconds: time of tracing, compilation and warmup runs.
      imported_bytes: resident memory after importing the libraries.
      built_bytes: resident memory after creating model and optimizer.
      peak_bytes: peak resident memory during the timed runs.
      process_peak_bytes: peak resident memory of the process, including compilation.
      num_parameters: number of trainable parameters.
    """

    seconds: list[float]
    values: list[float]
    warm_up_seconds: float
    imported_bytes: int
    built_bytes: int
    peak_bytes: int
    process_peak_bytes: int
    num_parameters: int

    def summary(self) -> dict[str, Any]:
        """Returns medians and memory as saved in the results file."""
        return {
            "seconds": statistics.median(self.seconds),
            "fastest_seconds": min(self.seconds),
            "runs": len(self.seconds),
            "value": statistics.median(self.values),
            "warm_up_seconds": self.warm_up_seconds,
            "imported_bytes": self.imported_bytes,
            "built_bytes": self.built_bytes,
            "peak_bytes": self.peak_bytes,
            "process_peak_bytes": self.process_peak_bytes,
            "num_parameters": self.num_parameters,
        }


def compete(contestants: Iterable[Contestant], rounds: int, runs: int = 1) -> dict[str, Result]:
    """Times contestants in alternation.

    Args:
      contestants: the contestants; those whose libraries are missing are skipped with a warning.
      rounds: number of turns of each contestant.
      runs: number of timed runs per turn.

    Returns:
      {name: result} of those that ran.

    Raises:
      RuntimeError: a worker process failed; the message has the end of its standard error.
    """
    with contextlib.ExitStack() as stack:
        workers = {}
        for contestant in contestants:
            worker = stack.enter_context(_worker(contestant))
            absent = worker.ask("prepare").get("absent")
            if absent:
                logging.warning("%s is skipped: %s", contestant.name, absent)
                continue
            workers[contestant.name] = worker
        turns: dict[str, list[dict]] = {name: [] for name in workers}
        for _ in range(rounds):
            for name, worker in workers.items():
                turns[name].extend(worker.ask(f"run {runs}")["runs"])
        return {
            name: Result(
                seconds=[turn["seconds"] for turn in turns[name]],
                values=[turn["value"] for turn in turns[name]],
                **worker.ask("memory"),
            )
            for name, worker in workers.items()
        }


class _Worker:
    def __init__(self, name: str, process: subprocess.Popen, errors: IO[str]):
        self._name, self._process, self._errors = name, process, errors

    def ask(self, question: str) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(question + "\n")
            self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            self._errors.seek(0)
            raise RuntimeError(f"{self._name} failed:\n{self._errors.read()[-4000:]}")
        return json.loads(answer)


@contextlib.contextmanager
def _worker(contestant: Contestant) -> Iterator[_Worker]:
    command = [sys.executable, "-m", "benchmarks.harness.worker", contestant.module]
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            [*command, json.dumps(contestant.task)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        )
        try:
            yield _Worker(contestant.name, process, errors)
        finally:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                with contextlib.suppress(BrokenPipeError):
                    stream.close()  # type: ignore[union-attr]
