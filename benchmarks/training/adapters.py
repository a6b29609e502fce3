"""A step of fine-tuning with adapters (LoRA) beside one of all weights: CPU time and memory.

    python -m benchmarks.training.adapters --layers=12 --ranks=0,8

The model is `configs/base.yaml` with so many layers and a classifier, with random weights. Each
rank, 0 for all weights, runs in a fresh process. Each line is JSON.
"""

from __future__ import annotations

import dataclasses
import json
import multiprocessing
import resource
import statistics
import time
from typing import Any

from benchmarks.harness.command_line import flag, parse
from benchmarks.harness.workload import BASE3


def _measured(rank: int, rounds: int, sizes: dict[str, Any]) -> dict[str, Any]:
    from benchmarks.training import ours

    shape = dataclasses.replace(BASE3, **sizes, mem_len=0, reuse_len=0, num_predict=1)
    work = ours.build("finetune", dataclasses.asdict(shape), lora_rank=rank)
    work.run()  # Traced and compiled.
    seconds = []
    for _ in range(rounds):
        start = time.process_time()
        work.run()
        seconds.append(time.process_time() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {
        "lora_rank": rank,
        "trained_parameters": work.num_parameters,
        "cpu_seconds": round(statistics.median(seconds), 2),
        "peak_gigabytes": round(peak / 1e9, 2),
    }


def main() -> None:
    options = parse(
        __doc__,
        layers=flag(12, "number of layers"),
        ranks=flag(["0", "8"], "ranks of the adapters"),
        length=flag(128, "number of tokens of a row"),
        batch_size=flag(8, "rows of a batch"),
        rounds=flag(3, "steps that are timed"),
    )
    sizes = {"num_layers": options.layers, "seq_len": options.length}
    sizes["batch_size"] = options.batch_size
    for rank in map(int, options.ranks):
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            row = pool.apply(_measured, (rank, options.rounds, sizes))
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
