"""Worker process of one contestant: builds it and runs it on request (see `contest`).

    python -m benchmarks.harness.worker MODULE TASK

The first line of standard output says what was built, or {"absent": message} if a library is
missing. For each line of standard input, the arguments of a run, another one has the seconds of the
run, its value, and the peak of resident memory. All lines are JSON.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import pathlib
import resource
import sys
import time
from collections.abc import Callable
from typing import Any


@dataclasses.dataclass(frozen=True)
class Work:
    """A workload to time.

    Attributes:
      run: runs one step synchronously and returns a value that depends on the result.
      num_parameters: number of trainable parameters.
    """

    run: Callable[..., Any]
    num_parameters: int = 0


def resident_bytes() -> int:
    """Returns the current resident memory of this process, in bytes."""
    pages = pathlib.Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def main() -> None:
    # Redirects standard output, so that output of libraries is not mistaken for answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def answer(tree: dict[str, Any]) -> None:
        print(json.dumps(tree), file=answers, flush=True)

    try:
        build = importlib.import_module(sys.argv[1]).build
        imported = resident_bytes()
        work: Work = build(**json.loads(sys.argv[2]))
    except ModuleNotFoundError as error:
        answer({"absent": f"it needs {error.name}, which is not installed"})
        return
    answer(
        {
            "imported_bytes": imported,
            "built_bytes": resident_bytes(),
            "process_peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            "num_parameters": work.num_parameters,
        }
    )
    for line in sys.stdin:
        pathlib.Path("/proc/self/clear_refs").write_text("5")  # Forgets the peak so far.
        start = time.perf_counter()
        value = work.run(*json.loads(line))
        seconds = time.perf_counter() - start
        status = pathlib.Path("/proc/self/status").read_text(encoding="ascii")
        peak = 1024 * int(status.partition("VmHWM:")[2].split()[0])
        answer({"seconds": seconds, "value": value, "peak_bytes": peak})


if __name__ == "__main__":
    main()
