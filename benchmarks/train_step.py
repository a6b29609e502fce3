"""Seconds of a pre-training step, as a share of the matmul ceiling, beside the peers.

    python -m benchmarks.train_step --shape=base3 --steps=10 --peers

Everyone is timed in the same run, turn by turn; ours in its best mode, which for `small` is two
slices of the batch side by side (`training.parallel_slices`). The last line is JSON:

    seconds             median of our step, the way `fit` runs it
    share_of_ceiling    necessary operations / seconds / matmul rate of the run
    peak_bytes          most resident memory during the steps
    ratios              {peer: its median / ours}, with --peers

`--profile=DIR` also writes a trace of our step for TensorBoard, and adds `profile`: milliseconds
of a step by kind of operation, summed over threads.
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
MODES = {"base3": "ours", "small": "ours, 2 slices"}  # Our best mode, as measured.
CEILING = Contestant("matmul ceiling", "benchmarks.training.ceiling", {})


def contestants(shape: Shape) -> dict[str, Contestant]:
    """Everyone, in every mode that could be the best one, by name."""
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
    """Times some of the `contestants` and the ceiling; returns what `against_ceiling` returns."""
    everyone = contestants(shape)
    necessary = flops.total(flops.necessary(shape))
    return against_ceiling((everyone[name] for name in names), necessary, rounds)


def against_ceiling(
    everyone: Iterable[Contestant], necessary_flops: int, rounds: int
) -> dict[str, Any]:
    """Times contestants and the ceiling.

    Returns:
      necessary_flops: of a run.
      ceiling: operations per second: best product of a turn, median over turns like all else.
      results: {name: `Result.figures`}.
    """
    results = compete([CEILING, *everyone], rounds)
    return {
        "necessary_flops": necessary_flops,
        "ceiling": statistics.median(results.pop(CEILING.name).values),
        "results": {name: result.figures() for name, result in results.items()},
    }


def main(argv: Sequence[str]) -> None:
    del argv
    shape = SHAPES[_SHAPE.value]
    ours = "ours, XLA" if _JIT_COMPILE.value else MODES[_SHAPE.value]
    peers = ["tf-models-official", "HF"] if _PEERS.value else []
    outcome = compare(shape, [ours, *peers], _STEPS.value)
    results = outcome["results"]
    seconds = results[ours]["seconds"]
    figures = {
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
        figures["ratios"] = {name: result["seconds"] / seconds for name, result in rest.items()}
        figures["peak_bytes_of_peers"] = {
            name: result["peak_bytes"] for name, result in rest.items()
        }
    if _PROFILE.value:
        from benchmarks.training.trace import trace_step

        figures["profile"] = trace_step(contestants(shape)[ours].task, _PROFILE.value)
    print(json.dumps(figures))


if __name__ == "__main__":
    _SHAPE = flags.DEFINE_enum("shape", "small", sorted(SHAPES), "Model and batch.")
    _STEPS = flags.DEFINE_integer("steps", 10, "Timed steps of everyone.", lower_bound=1)
    _PEERS = flags.DEFINE_bool("peers", False, "Whether other implementations are timed too.")
    _JIT_COMPILE = flags.DEFINE_bool("jit_compile", False, "Whether XLA compiles our whole step.")
    _PROFILE = flags.DEFINE_string("profile", None, "Directory for a TensorBoard trace.")
    app.run(main)
