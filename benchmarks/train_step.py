"""Benchmark of the pre-training step: time, utilization of the matmul ceiling, and peers.

    python -m benchmarks.train_step --shape=base3 --steps=10 --peers

Implementations are timed in alternation in the same run. Ours runs in its fastest mode, which for
`small` is parallel gradient accumulation (`training.parallel_slices`). The last line is JSON:

    seconds             median time of our step, as run by `fit`
    share_of_ceiling    necessary FLOP / seconds / matmul FLOP/s of the run
    peak_bytes          peak resident memory during the steps
    ratios              {peer: its median / ours}, with --peers

`--profile=DIR` also writes a TensorBoard trace of our step and adds `profile`: milliseconds per
step by operation type, summed over threads.
"""

from __future__ import annotations

import dataclasses
import json
import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from absl import app, flags

from benchmarks.costs import flops
from benchmarks.harness.contest import Contestant, compete
from benchmarks.harness.workload import SHAPES, Shape

OURS, HF, TFM = (
    "benchmarks.training.ours",
    "benchmarks.training.peers.hf",
    "benchmarks.training.peers.tfm",
)
# Our fastest mode, as measured.
MODES = {"base3": "ours", "small": "ours, 2 slices", "tiny": "ours, 2 slices"}
CEILING = Contestant("matmul ceiling", "benchmarks.training.ceiling", {})


def contestants(shape: Shape) -> dict[str, Contestant]:
    """Returns all implementations in all modes that may be the fastest, by name."""
    task = {"kind": "pretrain", "shape": dataclasses.asdict(shape)}
    return {
        contestant.name: contestant
        for contestant in (
            Contestant("ours", OURS, task),
            Contestant("ours, 2 slices", OURS, {**task, "parallel_slices": 2}),
            Contestant("ours, XLA", OURS, {**task, "jit_compile": True}),
            Contestant("ours, memory released", OURS, {**task, "release_memory": True}),
            Contestant("tf-models-official", TFM, task),
            Contestant("tf-models-official, XLA", TFM, {**task, "jit_compile": True}),
            Contestant("HF", HF, task),
            Contestant("HF, torch.compile", HF, {**task, "compile": True}),
        )
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
    return against_ceiling((everyone[name] for name in names), necessary, rounds)


def against_ceiling(
    everyone: Iterable[Contestant], necessary_flops: int, rounds: int
) -> dict[str, Any]:
    """Times contestants and the matmul ceiling.

    Args:
      everyone: the contestants.
      necessary_flops: necessary FLOP of a run.
      rounds: number of turns of each.

    Returns:
      A dictionary with
        necessary_flops: as given.
        ceiling: matmul FLOP/s: the best of each turn, median over turns.
        results: {name: `Result.summary`}.
    """
    results = compete([CEILING, *everyone], rounds)
    return {
        "necessary_flops": necessary_flops,
        "ceiling": statistics.median(results.pop(CEILING.name).values),
        "results": {name: result.summary() for name, result in results.items()},
    }


def main(argv: Sequence[str]) -> None:
    del argv
    shape = SHAPES[_SHAPE.value]
    ours = "ours, XLA" if _JIT_COMPILE.value else MODES[_SHAPE.value]
    peers = ["tf-models-official", "HF"] if _PEERS.value else []
    outcome = compare(shape, [ours, *peers], _STEPS.value)
    results = outcome["results"]
    seconds = results[ours]["seconds"]
    metrics = {
        "shape": _SHAPE.value,
        "seconds": seconds,
        "share_of_ceiling": outcome["necessary_flops"] / seconds / outcome["ceiling"],
        "peak_bytes": results[ours]["peak_bytes"],
        "tokens_per_second": shape.tokens / seconds,
        "necessary_flops": outcome["necessary_flops"],
        "ceiling_flops_per_second": outcome["ceiling"],
    }
    if peers:
        rest = {name: result for name, result in results.items() if name != ours}
        metrics["ratios"] = {name: result["seconds"] / seconds for name, result in rest.items()}
        metrics["peak_bytes_of_peers"] = {
            name: result["peak_bytes"] for name, result in rest.items()
        }
    if _PROFILE.value:
        from benchmarks.training.trace import trace_step

        metrics["profile"] = trace_step(contestants(shape)[ours].task, _PROFILE.value)
    print(json.dumps(metrics))


if __name__ == "__main__":
    _SHAPE = flags.DEFINE_enum("shape", "small", sorted(SHAPES), "Sizes of model and batch.")
    _STEPS = flags.DEFINE_integer("steps", 10, "Timed steps of each.", lower_bound=1)
    _PEERS = flags.DEFINE_bool("peers", False, "Whether to time other implementations.")
    _JIT_COMPILE = flags.DEFINE_bool("jit_compile", False, "Whether to compile our step with XLA.")
    _PROFILE = flags.DEFINE_string("profile", None, "Directory for a TensorBoard trace.")
    app.run(main)
