"""Interleaved benchmarks of several implementations in separate processes: A B A B …

The speed of a shared machine drifts, so implementations take turns and are compared by the medians
of one run. Separate processes isolate their libraries and make memory attributable.
"""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from typing import Any, NamedTuple

from absl import logging

WARM_UP_RUNS = 2


class Contestant(NamedTuple):
    """An implementation to benchmark, with its workload.

    Attributes:
      module: module with a function `build(**task)` that returns a `worker.Work`.
      task: JSON-serializable arguments of `build`.
    """

    module: str
    task: dict[str, Any]


class Worker:
    """Process that builds a contestant and runs it on request; see `worker`.

    Args:
      contestant: the contestant.

    Attributes:
      built: what the worker says of what it has built, or {"absent": message}.
    """

    def __init__(self, contestant: Contestant):
        self._name = contestant.module
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115  Open as long as the process.
        command = [sys.executable, "-m", "benchmarks.harness.worker", contestant.module]
        self._process = subprocess.Popen(
            [*command, json.dumps(contestant.task)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        )
        self.built = self._answer()

    def run(self, *arguments: Any) -> dict[str, Any]:
        """Runs the contestant once; returns `seconds`, `value` and `peak_bytes`.

        Raises:
          RuntimeError: the process failed; the message has the end of its standard error.
        """
        with contextlib.suppress(BrokenPipeError):
            print(json.dumps(arguments), file=self._process.stdin, flush=True)
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        answer = self._process.stdout.readline()
        if not answer:
            self._errors.seek(0)
            raise RuntimeError(f"{self._name} failed:\n{self._errors.read()[-4000:]}")
        return json.loads(answer)

    def close(self) -> None:
        """Ends the process."""
        self._process.kill()
        self._process.communicate()
        self._errors.close()


def compete(
    contestants: Mapping[str, Contestant], rounds: int, warm_up_runs: int = WARM_UP_RUNS
) -> dict[str, dict[str, Any]]:
    """Times contestants in alternation.

    Args:
      contestants: the contestants by name; those whose libraries are missing are skipped with a
        warning.
      rounds: number of timed runs of each contestant.
      warm_up_runs: number of runs of each before them.

    Returns:
      {name: medians and memory, as saved in the results file} of those that ran:
        seconds, fastest_seconds, runs: time of a timed run, and their number.
        value: median return value of a run: the loss, or FLOP/s for the ceiling.
        warm_up_seconds: time of tracing, compilation and warmup runs.
        imported_bytes: resident memory after importing the libraries.
        built_bytes: resident memory after creating model and optimizer.
        peak_bytes: peak resident memory during the timed runs.
        process_peak_bytes: peak resident memory of the process, including compilation.
        num_parameters: number of trainable parameters.

    Raises:
      RuntimeError: a worker process failed; the message has the end of its standard error.
    """
    with contextlib.ExitStack() as stack:
        workers, turns = {}, {}
        for name, contestant in contestants.items():
            worker = stack.enter_context(contextlib.closing(Worker(contestant)))
            if "absent" in worker.built:
                logging.warning("%s is skipped: %s", name, worker.built["absent"])
                continue
            workers[name] = worker
            turns[name] = [worker.run() for _ in range(warm_up_runs)]
        for _ in range(rounds):
            for name, worker in workers.items():
                turns[name].append(worker.run())
        return {
            name: _summary(worker.built, turns[name], warm_up_runs)
            for name, worker in workers.items()
        }


def _summary(
    built: dict[str, Any], turns: list[dict[str, Any]], warm_up_runs: int
) -> dict[str, Any]:
    timed = turns[warm_up_runs:]
    seconds = [turn["seconds"] for turn in timed]
    peaks = [built["process_peak_bytes"], *(turn["peak_bytes"] for turn in turns)]
    return built | {
        "seconds": statistics.median(seconds),
        "fastest_seconds": min(seconds),
        "runs": len(timed),
        "value": statistics.median(turn["value"] for turn in timed),
        "warm_up_seconds": sum(turn["seconds"] for turn in turns[:warm_up_runs]),
        "peak_bytes": max(turn["peak_bytes"] for turn in timed),
        "process_peak_bytes": max(peaks),
    }
