"""Operations that a request to exported models executes, and its time, by number of threads.

    python -m benchmarks.serving.operations --version=exported/sst2/1 --version=exported/sst2/2

The versions run in sessions, as TF Serving runs them, and in turns, so that other work on the
machine affects all alike. One line for each version and number of threads:

    executed      number of executed operations of a request, and of the most frequent kinds
    cpu, wall     median CPU time and time of a request, in milliseconds
    relative_cpu  median ratio to the CPU time of the first line, turn by turn
"""

from __future__ import annotations

import collections
import itertools
import json
import re
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401  # Operations of the text signature.

from benchmarks.harness.command_line import flag, parse, repeated
from official.xlnet.runtime.cores import num_cores

v1 = tf.compat.v1
_LISTED = 5
_WARM_UP = 20


def main() -> None:
    """Prints the operations and the times of a request."""
    flags = parse(
        __doc__,
        version=repeated("directory of a version; several ones are compared"),
        length=flag(16, "tokens of a row"),
        rows=flag(1, "rows of a request"),
        requests=flag(200, "timed requests of each, in turns"),
    )
    cases = list(itertools.product(flags.version, sorted({1, num_cores()})))
    runs = [_run(*case, flags.rows, flags.length) for case in cases]
    kinds = [_executed(run) for run in runs]
    wall, cpu = np.zeros([2, flags.requests, len(runs)])
    for turn, (number, run) in itertools.product(range(flags.requests), enumerate(runs)):
        start = time.perf_counter(), time.process_time()
        run()
        wall[turn, number] = time.perf_counter() - start[0]
        cpu[turn, number] = time.process_time() - start[1]
    for number, (version, threads) in enumerate(cases):
        row = {
            "version": version,
            "threads": threads,
            "executed": sum(kinds[number].values()),
            **dict(kinds[number].most_common(_LISTED)),
            "cpu": round(1e3 * statistics.median(cpu[:, number]), 3),
            "wall": round(1e3 * statistics.median(wall[:, number]), 3),
            "relative_cpu": round(statistics.median(cpu[:, number] / cpu[:, 0]), 3),
        }
        print(json.dumps(row))


def _executed(run: Callable[..., Any]) -> collections.Counter[str]:
    """Counts the operations of a request by type, after a few others."""
    metadata = v1.RunMetadata()
    for _ in range(_WARM_UP):
        run()
    run(options=v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE), run_metadata=metadata)
    devices = metadata.step_stats.dev_stats
    labels = [node.timeline_label for device in devices for node in device.node_stats]
    types = [re.search(r" = (\w+)\(", label) for label in labels]
    return collections.Counter(match.group(1) if match else "other" for match in types)


def _run(version: str, threads: int, rows: int, length: int) -> Callable[..., Any]:
    """Returns a function that sends the version one request, with a number of threads."""
    config = v1.ConfigProto(
        intra_op_parallelism_threads=threads,
        inter_op_parallelism_threads=threads,
        use_per_session_threads=True,
    )
    session = v1.Session(graph=tf.Graph(), config=config)
    with session.graph.as_default():
        loaded = v1.saved_model.load(session, ["serve"], version)
    signature = loaded.signature_def["token_ids"]
    ids = np.random.default_rng(0).integers(9, 1000, [rows, length])
    values = {"token_ids": ids, "segment_ids": np.zeros_like(ids)}
    feeds = {signature.inputs[name].name: x for name, x in values.items()}
    fetches = [tensor.name for tensor in signature.outputs.values()]

    def run(**options: Any) -> None:
        session.run(fetches, feeds, **options)

    return run


if __name__ == "__main__":
    main()
