"""Worker process of one contestant: builds it and runs it on request (see `contest`).

Requests are lines on standard input, responses are lines of JSON on standard output:

    prepare    builds and warms up; returns {"absent": message} if a library is missing
    run N      returns {"runs": [{"seconds": s, "value": v}, …]}
    memory     returns resident memory after import, after building and at peak
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import resource
import sys
import time
from collections.abc import Callable

WARM_UP_RUNS = 2


@dataclasses.dataclass(frozen=True)
class Work:
    """A workload to time.

    Attributes:
      run: runs one step synchronously and returns a value that depends on the result.
      num_parameters: number of trainable parameters.
    """

    run: Callable[[], float]
    num_parameters: int = 0


def resident_bytes() -> int:
    """Returns the current resident memory of this process, in bytes."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _peak_bytes() -> int:
    with open("/proc/self/status", encoding="ascii") as file:
        line = next(line for line in file if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


def _forget_peak() -> None:
    with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
        file.write("5")


def _prepare(module: str, task: dict) -> tuple[Work, dict]:
    build = importlib.import_module(module).build
    imported = resident_bytes()
    work = build(**task)
    built = resident_bytes()
    start = time.perf_counter()
    for _ in range(WARM_UP_RUNS):
        work.run()
    warm_up_seconds = time.perf_counter() - start
    process_peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    _forget_peak()
    return work, {
        "imported_bytes": imported,
        "built_bytes": built,
        "process_peak_bytes": process_peak,
        "warm_up_seconds": warm_up_seconds,
        "num_parameters": work.num_parameters,
    }


def _timed(work: Work) -> dict[str, float]:
    start = time.perf_counter()
    value = work.run()
    return {"seconds": time.perf_counter() - start, "value": value}


def main() -> None:
    # Redirects standard output, so that output of libraries is not mistaken for responses.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def answer(tree: dict) -> None:
        print(json.dumps(tree), file=answers, flush=True)

    module, task = sys.argv[1], json.loads(sys.argv[2])
    for line in sys.stdin:
        question, *arguments = line.split()
        if question == "prepare":
            try:
                work, memory = _prepare(module, task)
            except ModuleNotFoundError as error:
                answer({"absent": f"it needs {error.name}, which is not installed"})
                continue
            answer({})
        elif question == "run":
            answer({"runs": [_timed(work) for _ in range(int(arguments[0]))]})
        else:
            assert question == "memory", question
            peak = _peak_bytes()
            memory["process_peak_bytes"] = max(memory["process_peak_bytes"], peak)
            answer({**memory, "peak_bytes": peak})


if __name__ == "__main__":
    main()
