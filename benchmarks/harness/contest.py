"""Contestants in processes of their own, timed turn by turn: A B A B …

Speed drifts on a machine that others use too, so contestants take turns and are compared by
medians of one run. Each lives in its own process: libraries do not disturb one another, and the
memory of a process is its contestant's.
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
    """Who is timed, and on what.

    Attributes:
      name: for tables.
      module: has `build(**task)` that returns a `worker.Work`; what it needs is imported with it.
      task: arguments of `build`, as JSON.
    """

    name: str
    module: str
    task: dict[str, Any]


@dataclasses.dataclass
class Result:
    """What was measured of one contestant.

    Attributes:
      seconds: of every timed run.
      values: what every run returned: a loss, or the rate of the ceiling.
      warm_up_seconds: of tracing, compiling and the runs before the timed ones.
      imported_bytes: resident memory once the libraries are imported.
      built_bytes: once model and optimizer exist as well.
      peak_bytes: most resident memory during the timed runs.
      process_peak_bytes: most since the process began, compilation included.
      num_parameters: trained numbers of the model.
    """

    seconds: list[float]
    values: list[float]
    warm_up_seconds: float
    imported_bytes: int
    built_bytes: int
    peak_bytes: int
    process_peak_bytes: int
    num_parameters: int

    def figures(self) -> dict[str, Any]:
        """Medians and memory, for the file of results."""
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
    """Times contestants in turns.

    Args:
      contestants: in this order; those whose libraries are missing are left out, with a warning.
      rounds: how often each has its turn.
      runs: timed runs of a turn.

    Returns:
      {name: result} of those that ran.

    Raises:
      RuntimeError: a contestant broke; the message ends with what it wrote to standard error.
    """
    with contextlib.ExitStack() as stack:
        workers = {}
        for contestant in contestants:
            worker = stack.enter_context(_worker(contestant))
            absent = worker.ask("prepare").get("absent")
            if absent:
                logging.warning("%s is left out: %s", contestant.name, absent)
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
            raise RuntimeError(f"{self._name} broke:\n{self._errors.read()[-4000:]}")
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
