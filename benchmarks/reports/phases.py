"""Benchmark phases of a few minutes each; each returns the results to save."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

from benchmarks.costs import flops
from benchmarks.harness.contest import Contestant, compete
from benchmarks.harness.workload import BASE3, SHAPES, Shape, encoding, growing
from benchmarks.train_step import HF, OURS, against_ceiling, compare, contestants

ENCODER_LENGTHS, ENCODER_BATCHES = (64, 128, 512), (1, 8)
GROWTH_SEQ_LEN = 128
FINETUNE_BATCH, FINETUNE_LENGTH = 8, 128
_GROWTH_TOKENS = {"short": (128, 256, 512), "long": (1024, 2048)}
_GROWTH_MEMORY = {"short": (0, 128, 256), "long": (512, 1024)}
_BEST = ("ours", "tf-models-official", "HF")
# Two layers of `small`, for a short compilation; all layers have the same products.


def recompute(rounds: int, in_turns: bool = True, **sizes: Any) -> dict[str, Any]:
    """Measures time and memory of rematerialization and gradient accumulation.

    Args:
      rounds: number of turns of each mode.
      in_turns: whether modes alternate. If False, they run one after the other, for models that
        do not fit in memory together.
      **sizes: fields of `Shape` that differ from `base3`.
    """
    task = contestants(dataclasses.replace(BASE3, **sizes))["ours"].task
    modes: tuple[dict[str, Any], ...] = (
        *({"recompute": mode} for mode in ("none", "attention", "block")),
        {"accumulate_steps": 2},
    )
    everyone = {
        f"{key}: {value}": Contestant(OURS, {**task, key: value})
        for mode in modes
        for key, value in mode.items()
    }
    if in_turns:
        return compete(everyone, rounds)
    alone = (compete({name: one}, rounds) for name, one in everyone.items())
    return functools.reduce(dict.__or__, alone)


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
        everyone = _both("encode", shape) | {
            "ours, served": Contestant(OURS, task),
            "ours, served, XLA": Contestant(OURS, {**task, "jit_compile": True}),
        }
        necessary = flops.total(flops.necessary(shape, training=False))
        results[str(batch)] = against_ceiling(everyone, necessary, rounds)
    return results


def _both(kind: str, shape: Shape) -> dict[str, Contestant]:
    """Returns ours and HF, eager and compiled."""
    task = {"kind": kind, "shape": dataclasses.asdict(shape)}
    return {
        "ours": Contestant(OURS, task),
        "ours, XLA": Contestant(OURS, {**task, "jit_compile": True}),
        "HF": Contestant(HF, task),
        "HF, torch.compile": Contestant(HF, {**task, "compile": True}),
    }


def growth(shapes: dict[str, Shape], rounds: int) -> dict[str, Any]:
    """Times a training step of each shape; all have 2,048 tokens."""
    return {
        name: {
            "flops_per_token": flops.total(flops.necessary(shape)) / shape.tokens,
            "tokens": shape.tokens,
            "results": compete({one: contestants(shape)[one] for one in _BEST}, rounds),
        }
        for name, shape in shapes.items()
    }


PHASES: dict[str, Callable[[], dict[str, Any]]] = {
    "train_base3": functools.partial(compare, BASE3, _BEST, rounds=6),
    "train_base3_xla": functools.partial(
        compare, BASE3, ("ours", "ours, XLA", "tf-models-official, XLA"), rounds=4
    ),
    "train_base3_compile": functools.partial(
        compare, BASE3, ("ours", "ours, memory released", "HF, torch.compile"), rounds=5
    ),
    **{
        f"train_{shape}{mode}": functools.partial(compare, SHAPES[shape], names, rounds=rounds)
        for shape, rounds in (("small", 10), ("tiny", 20))
        for mode, names in (
            ("", ("ours", "ours, 2 slices", *_BEST[1:])),
            ("_xla", ("ours", "ours, XLA", "tf-models-official, XLA")),
            ("_compile", ("ours", "HF, torch.compile")),
        )
    },
    "recompute_base_8": functools.partial(
        recompute, rounds=2, in_turns=False, num_layers=12, batch_size=8
    ),
    "finetune": functools.partial(finetune_step, rounds=10),
    **{
        f"encoder_{length}": functools.partial(encoder, length, rounds=10)
        for length in ENCODER_LENGTHS
    },
    **{
        f"growth_tokens_{part}": functools.partial(
            growth, {str(length): growing(length, mem_len=0) for length in lengths}, rounds=5
        )
        for part, lengths in _GROWTH_TOKENS.items()
    },
    **{
        f"growth_memory_{part}": functools.partial(
            growth, {str(length): growing(GROWTH_SEQ_LEN, length) for length in lengths}, rounds=5
        )
        for part, lengths in _GROWTH_MEMORY.items()
    },
}
