"""Runs a step of ours on any device that jax has, without TensorFlow.

    python run_bundle.py BUNDLE [--steps=20] [--tolerance=1e-5] [--peak_tflops=989] [--profile=30]

BUNDLE is a folder that `python -m benchmarks.accelerators.bundle` wrote: the step, its state, a few
batches, and what TensorFlow computed from them on a CPU. First the losses are compared, then steps
are timed; --profile prints the kernels that take longest, where the device says. The last line of
standard output is one JSON object; status 1 says that losses differ. Needs jax and numpy, and
nothing of this project: the file may be copied.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import glob
import json
import os
import statistics
import sys
import tempfile
import time

import jax
import jax.numpy as jnp
import numpy as np
from jax import export

jax.config.update("jax_enable_x64", True)  # Window ids and the number of the step are int64.

# bfloat16 operations per second of a device, dense, by a part of the name that jax gives it.
_PEAKS = {
    "H200": 989e12,
    "H100": 989e12,
    "A100": 312e12,
    "TPU v4": 275e12,
    "TPU v5 lite": 197e12,
    "TPU v5": 459e12,
    "TPU v6 lite": 918e12,
}
_WARM_UP = 2


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("bundle", help="folder of the bundle")
    parser.add_argument("--steps", type=int, default=20, help="steps that are timed; 0 for none")
    parser.add_argument(
        "--tolerance", type=float, default=1e-5, help="largest relative difference of losses"
    )
    parser.add_argument(
        "--peak_tflops", type=float, help="peak of the device, where its name is not known here"
    )
    parser.add_argument("--profile", type=int, default=0, help="kernels to print; 0 for none")
    flags = parser.parse_args()
    with open(os.path.join(flags.bundle, "step.json"), encoding="utf-8") as file:
        description = json.load(file)
    with open(os.path.join(flags.bundle, "step.stablehlo"), "rb") as file:
        step = as_function(file.read(), description, jax.default_backend())
    state = _arrays(flags.bundle, "state", description["state"])
    batches = [
        _arrays(flags.bundle, f"batch_{number}", description["batch"])
        for number in range(len(description["losses"]))
    ]
    losses = []
    for batch in batches:
        results, state = step(batch, state)
        losses.append(float(results[description["results"].index("loss")]))
    expected = description["losses"]
    difference = float(np.max(np.abs(np.divide(losses, expected) - 1)))
    report = {
        "device": jax.devices()[0].device_kind,
        "jax": jax.__version__,
        "losses": losses,
        "expected_losses": expected,
        "difference": difference,
        "agrees": difference <= flags.tolerance,
    }
    if flags.steps:
        timed, state = _timed(step, batches, state, description, flags)
        report |= timed
    if flags.profile:
        report["kernels"] = _profiled(step, batches, state, flags.profile)
    print(json.dumps(report))
    return 0 if report["agrees"] else 1


def as_function(module: bytes, description: dict, platform: str):
    """The step as a compiled function (batch, state) → (results, new state).

    jax calls modules that it exported itself; so one with the same parameters and results is
    exported, and its module replaced.
    """
    inputs = [_spec(spec) for spec in description["batch"] + description["state"]]
    outputs = [_spec(spec) for spec in description["outputs"]]
    zeros = jax.jit(
        lambda *_: tuple(jnp.zeros(spec.shape, spec.dtype) for spec in outputs), keep_unused=True
    )
    exported = export.export(zeros, platforms=["cuda" if platform == "gpu" else platform])(*inputs)
    exported = dataclasses.replace(exported, mlir_module_serialized=module)

    def function(batch, state):
        outputs = exported.call(*batch, *state)
        state = list(state)
        for output, number in description["new_state"]:
            state[number] = outputs[output]
        return outputs[: description["num_results"]], state

    return jax.jit(function, donate_argnums=1)


def _spec(spec: dict) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(tuple(spec["shape"]), jnp.dtype(spec["dtype"]))


def _arrays(folder: str, name: str, specs: list[dict]) -> list[jax.Array]:
    """Arrays on the device. NumPy has no bfloat16 and stores its bytes."""
    with np.load(os.path.join(folder, f"{name}.npz"), allow_pickle=False) as file:
        stored = [file[f"arr_{number}"] for number in range(len(specs))]
    return [
        jnp.asarray(array.view(jnp.dtype(spec["dtype"])))
        for array, spec in zip(stored, specs, strict=True)
    ]


def _timed(step, batches, state, description: dict, flags) -> tuple[dict, list]:
    seconds = []
    for number in range(_WARM_UP + flags.steps):
        start = time.perf_counter()
        results, state = step(batches[number % len(batches)], state)
        jax.block_until_ready((results, state))
        seconds.append(time.perf_counter() - start)
    median = statistics.median(seconds[_WARM_UP:])
    kind = jax.devices()[0].device_kind
    peak = next((peak for name, peak in _PEAKS.items() if name in kind), None)
    if flags.peak_tflops:
        peak = 1e12 * flags.peak_tflops
    rate = description["flops"] / median
    report = {
        "seconds": median,
        "tokens_per_second": description["tokens"] / median,
        "tflops": rate / 1e12,
        "share_of_peak": rate / peak if peak else None,
    }
    return report, state


def _profiled(step, batches, state, count: int) -> int | None:
    """Prints the kernels of a step that take longest; returns how many there are, None if unknown.

    GPUs list kernels by stream, TPUs their operations; a CPU has neither.
    """
    steps = 3
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            for number in range(steps):
                results, state = step(batches[number % len(batches)], state)
            jax.block_until_ready((results, state))
        (path,) = glob.glob(os.path.join(folder, "**", "*.xplane.pb"), recursive=True)
        planes = list(jax.profiler.ProfileData.from_file(path).planes)
    seconds: collections.Counter = collections.Counter()
    calls: collections.Counter = collections.Counter()
    for line in (line for plane in planes if "/device:" in plane.name for line in plane.lines):
        if line.name.startswith("Stream") or line.name == "XLA Ops":
            for event in line.events:
                seconds[event.name] += event.duration_ns / 1e9 / steps
                calls[event.name] += 1
    for name, duration in seconds.most_common(count):
        print(f"{1e3 * duration:9.3f} ms {calls[name] / steps:6.1f} times  {name}")
    return sum(calls.values()) // steps if calls else None


if __name__ == "__main__":
    sys.exit(main())
