"""Benchmark phases of a few minutes each; each returns the results to save."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable
from typing import Any

from benchmarks.costs import flops
from benchmarks.harness.contest import Contestant, compete
from benchmarks.harness.workload import BASE3, SHAPES, Shape, encoding, growing
from benchmarks.train_step import HF, OURS, against_ceiling, compare, contestants

ENCODER_LENGTHS, ENCODER_BATCHES = (64, 128, 512), (1, 8)
GROWTH_LENGTHS = (128, 256, 512, 1024, 2048)
GROWTH_MEMORIES = (0, 128, 256, 512, 1024)
GROWTH_SEQ_LEN = 128
FINETUNE_BATCH, FINETUNE_LENGTH = 8, 128


def train_step(shape: str, names: tuple[str, ...], rounds: int) -> dict[str, Any]:
    """Times the pre-training step of a shape.

    Args:
      shape: name of the shape, one of `SHAPES`.
      names: names of the `contestants` to time.
      rounds: number of turns of each.
    """
    return compare(SHAPES[shape], names, rounds)


def recompute(rounds: int, in_turns: bool = True, **sizes: Any) -> dict[str, Any]:
    """Measures time and memory of rematerialization and gradient accumulation.

    Args:
      rounds: number of turns of each mode.
      in_turns: whether modes alternate. If False, they run one after the other, for models that
        do not fit in memory together.
      **sizes: fields of `Shape` that differ from `base3`.
    """
    task = contestants(dataclasses.replace(BASE3, **sizes))["ours"].task
    modes: dict[str, dict[str, Any]] = {
        "recompute: none": {},
        "recompute: attention": {"recompute": "attention"},
        "recompute: block": {"recompute": "block"},
        "accumulate_steps: 2": {"accumulate_steps": 2},
    }
    everyone = [Contestant(name, OURS, {**task, **mode}) for name, mode in modes.items()]
    results: dict[str, Any] = {}
    for together in [everyone] if in_turns else [[one] for one in everyone]:
        results |= _compete(together, rounds)
    return results


def finetune_step(rounds: int) -> dict[str, Any]:
    """Times the fine-tuning step of a classifier with three layers of base width."""
    shape = encoding(FINETUNE_BATCH, FINETUNE_LENGTH)
    necessary = flops.total(flops.necessary(dataclasses.replace(shape, num_predict=0)))
    return against_ceiling(_both("finetune", shape), necessary, rounds)


def encoder(seq_len: int, rounds: int) -> dict[str, Any]:
    """Times the forward pass of the encoder: ours, ours as exported, and HF in inference mode."""
    results = {}
    for batch in ENCODER_BATCHES:
        shape = encoding(batch, seq_len)
        task = {"kind": "serve", "shape": dataclasses.asdict(shape)}
        everyone = (
            *_both("encode", shape),
            Contestant("ours, served", OURS, task),
            Contestant("ours, served, XLA", OURS, {**task, "jit_compile": True}),
        )
        necessary = flops.total(flops.necessary(shape, training=False))
        results[str(batch)] = against_ceiling(everyone, necessary, rounds)
    return results


def growth_in_tokens(lengths: tuple[int, ...], rounds: int) -> dict[str, Any]:
    """Times a training step of 2,048 tokens for each row length."""
    return {str(length): _growth(growing(length, mem_len=0), rounds) for length in lengths}


def growth_in_memory(memories: tuple[int, ...], rounds: int) -> dict[str, Any]:
    """Times a training step with rows of 128 tokens for each memory length."""
    return {str(memory): _growth(growing(GROWTH_SEQ_LEN, memory), rounds) for memory in memories}


def _growth(shape: Shape, rounds: int) -> dict[str, Any]:
    everyone = contestants(shape)
    names = ("ours", "tf-models-official", "HF")
    return {
        "flops_per_token": flops.total(flops.necessary(shape)) / shape.tokens,
        "tokens": shape.tokens,
        "results": _compete((everyone[name] for name in names), rounds),
    }


def _both(kind: str, shape: Shape) -> Iterable[Contestant]:
    """Returns ours and HF, eager and compiled."""
    task = {"kind": kind, "shape": dataclasses.asdict(shape)}
    return (
        Contestant("ours", OURS, task),
        Contestant("ours, XLA", OURS, {**task, "jit_compile": True}),
        Contestant("HF", HF, task),
        Contestant("HF, torch.compile", HF, {**task, "compile": True}),
    )


def _compete(everyone: Iterable[Contestant], rounds: int) -> dict[str, Any]:
    return {name: result.summary() for name, result in compete(everyone, rounds).items()}


def _xla_check() -> dict[str, Any]:
    from benchmarks.costs.cost_model import check_against_xla

    return check_against_xla()


_BEST = ("ours", "tf-models-official", "HF")
PHASES: dict[str, Callable[[], dict[str, Any]]] = {
    "train_base3": functools.partial(train_step, "base3", _BEST, rounds=6),
    "train_base3_xla": functools.partial(
        train_step, "base3", ("ours", "ours, XLA", "tf-models-official, XLA"), rounds=4
    ),
    "train_base3_compile": functools.partial(
        train_step, "base3", ("ours", "ours, memory released", "HF, torch.compile"), rounds=5
    ),
    **{
        f"train_{shape}{mode}": functools.partial(train_step, shape, names, rounds=rounds)
        for shape, rounds in (("small", 10), ("tiny", 20))
        for mode, names in (
            ("", ("ours", "ours, 2 slices", *_BEST[1:])),
            ("_xla", ("ours", "ours, XLA", "tf-models-official, XLA")),
            ("_compile", ("ours", "HF, torch.compile")),
        )
    },
    "recompute_base3": functools.partial(recompute, rounds=5),
    "recompute_base": functools.partial(recompute, rounds=3, num_layers=12),
    "recompute_base_8": functools.partial(
        recompute, rounds=2, in_turns=False, num_layers=12, batch_size=8
    ),
    "finetune": functools.partial(finetune_step, rounds=10),
    **{
        f"encoder_{length}": functools.partial(encoder, length, rounds=10)
        for length in ENCODER_LENGTHS
    },
    "growth_tokens_short": functools.partial(growth_in_tokens, GROWTH_LENGTHS[:3], rounds=5),
    "growth_tokens_long": functools.partial(growth_in_tokens, GROWTH_LENGTHS[3:], rounds=5),
    "growth_memory_short": functools.partial(growth_in_memory, GROWTH_MEMORIES[:3], rounds=5),
    "growth_memory_long": functools.partial(growth_in_memory, GROWTH_MEMORIES[3:], rounds=5),
    "xla_check": _xla_check,
}
