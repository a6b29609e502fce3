"""Benchmark of the pre-training step: time, utilization of the matmul ceiling, and peers.

    python -m benchmarks.train_step --shape=base3 --steps=10 --peers

Implementations are timed in alternation in the same run. Ours runs in its fastest mode, which for
`small` is parallel gradient accumulation (`training.parallel_slices`). The last line is JSON:

    seconds             median time of our step, as run by `fit`
    share_of_ceiling    necessary FLOP / seconds / matmul FLOP/s of the run
    peak_bytes          peak resident memory during the steps, of each
    ratios              {peer: its median / ours}, with --peers

`--profile=DIR` also writes a TensorBoard trace of our step and adds `profile`: milliseconds per
step by operation type, summed over threads.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.costs import flops
from benchmarks.harness.command_line import flag, parse
from benchmarks.harness.contest import Contestant, compete
from benchmarks.harness.workload import SHAPES, Shape

OURS, HF, TFM = (f"benchmarks.training.{name}" for name in ("ours", "peers.hf", "peers.tfm"))
# Our fastest mode, as measured.
MODES = {"base3": "ours", "small": "ours, 2 slices", "tiny": "ours, 2 slices"}
_CEILING = "matmul ceiling"


def contestants(shape: Shape) -> dict[str, Contestant]:
    """Returns all implementations in all modes that may be the fastest, by name."""
    task = {"kind": "pretrain", "shape": dataclasses.asdict(shape)}
    return {
        "ours": Contestant(OURS, task),
        "ours, 2 slices": Contestant(OURS, {**task, "parallel_slices": 2}),
        "ours, XLA": Contestant(OURS, {**task, "jit_compile": True}),
        "ours, memory released": Contestant(OURS, {**task, "release_memory": True}),
        "tf-models-official": Contestant(TFM, task),
        "tf-models-official, XLA": Contestant(TFM, {**task, "jit_compile": True}),
        "HF": Contestant(HF, task),
        "HF, torch.compile": Contestant(HF, {**task, "compile": True}),
    }


def compare(shape: Shape, names: Sequence[str], rounds: int) -> dict[str, Any]:
    """Times contestants and the matmul ceiling on a shape; see `against_ceiling`.

    Args:
      shape: sizes of model and batch.
      names: names of the `contestants` to time.
      rounds: number of turns of each.
    """
    everyone = contestants(shape)
    necessary = flops.total(flops.necessary(shape))
    return against_ceiling({name: everyone[name] for name in names}, necessary, rounds)


def against_ceiling(
    everyone: Mapping[str, Contestant], necessary_flops: int, rounds: int
) -> dict[str, Any]:
    """Times contestants and the matmul ceiling.

    Args:
      everyone: the contestants by name.
      necessary_flops: necessary FLOP of a run.
      rounds: number of turns of each.

    Returns:
      A dictionary with
        necessary_flops: as given.
        ceiling: matmul FLOP/s: the best of each turn, median over turns.
        results: the results of `compete`.
    """
    ceiling = Contestant("benchmarks.training.ceiling", {})
    results = compete({_CEILING: ceiling, **everyone}, rounds)
    best = results.pop(_CEILING)["value"]
    return {"necessary_flops": necessary_flops, "ceiling": best, "results": results}


def main() -> None:
    flags = parse(
        __doc__,
        shape=flag("small", "sizes of model and batch", choices=sorted(SHAPES)),
        steps=flag(10, "timed steps of each"),
        peers=flag(False, "whether to time other implementations"),
        profile=flag(None, "directory for a TensorBoard trace"),
    )
    shape, ours = SHAPES[flags.shape], MODES[flags.shape]
    peers = ["tf-models-official", "HF"] if flags.peers else []
    outcome = compare(shape, [ours, *peers], flags.steps)
    results = outcome["results"]
    seconds = results[ours]["seconds"]
    metrics = {
        "shape": flags.shape,
        "seconds": seconds,
        "share_of_ceiling": outcome["necessary_flops"] / seconds / outcome["ceiling"],
        "peak_bytes": {name: result["peak_bytes"] for name, result in results.items()},
        "tokens_per_second": shape.tokens / seconds,
        "necessary_flops": outcome["necessary_flops"],
        "ceiling_flops_per_second": outcome["ceiling"],
        "ratios": {name: results[name]["seconds"] / seconds for name in peers if name in results},
    }
    if flags.profile:
        from benchmarks.training.trace import trace_step

        metrics["profile"] = trace_step(contestants(shape)[ours].task, flags.profile)
    print(json.dumps(metrics))


if __name__ == "__main__":
    main()
