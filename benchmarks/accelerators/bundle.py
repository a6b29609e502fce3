"""A training step as a bundle that any device of jax runs, without TensorFlow.

    python -m benchmarks.accelerators.bundle --config=configs/base.yaml --batch_size=8 \
      --output=base_bundle
    python base_bundle/run_bundle.py base_bundle     # Where there are jax and NumPy.

Holds the step as StableHLO, the initial state, a few batches, and the losses that TensorFlow
computes from them here. Every device of jax runs it; `--device` says for which kind it is built.
`XLNET_JAX_PYTHON` names the interpreter that has the jax of `make tpu-check`.
"""

from __future__ import annotations

import json
import os
import shutil

import numpy as np
import tensorflow as tf

from benchmarks.accelerators import other_python
from benchmarks.accelerators.steps import DESCRIPTION, Case, trace, write_step
from benchmarks.harness.command_line import flag, parse, repeated, required
from benchmarks.harness.workload import windows
from official.xlnet.files.json_files import read_json, write_json
from official.xlnet.modeling.kernels.device_forms import DEVICES


def write_bundle(case: Case, folder: str, num_batches: int = 3) -> None:
    """Writes the bundle of a pre-training step.

    Args:
      case: a step of kind `pretrain`.
      folder: is created.
      num_batches: how many batches, and losses.
    """
    step = trace(case)
    write_step(case, step, folder)
    _save(folder, "state", [variable.numpy() for variable in step.state])
    losses, results = [], sorted(step.concrete.structured_outputs)
    for number in range(num_batches):
        batch = windows(case.shape(), seed=number)
        _save(folder, f"batch_{number}", tf.nest.flatten(batch))
        arguments = {name: tf.constant(value) for name, value in batch.items()}
        losses.append(float(step.concrete(arguments)["loss"]))
    path = os.path.join(folder, DESCRIPTION)
    write_json(path, {**read_json(path), "results": results, "losses": losses})
    other_python.run("portable.py", folder)
    shutil.copy(other_python.FOLDER / "run_bundle.py", folder)


def _save(folder: str, name: str, arrays: list[np.ndarray]) -> None:
    """Writes arrays in their order; those of bfloat16, which NumPy does not have, as bytes."""
    bfloat16 = tf.bfloat16.as_numpy_dtype
    stored = [x.view(np.uint16) if x.dtype == bfloat16 else x for x in arrays]
    np.savez(os.path.join(folder, f"{name}.npz"), *stored)


def main() -> None:
    flags = parse(
        __doc__,
        config=flag("configs/base.yaml", "recipe"),
        batch_size=flag(8, "rows of a batch"),
        set=repeated("key=value of the recipe"),
        device=flag("GPU", "kind of device to build it for", choices=DEVICES),
        output=required("folder of the bundle"),
    )
    other_python.interpreter()
    settings = tuple(flags.set)
    case = Case(flags.config, "pretrain", flags.batch_size, settings=settings, device=flags.device)
    write_bundle(case, flags.output)
    print(json.dumps({"path": flags.output}))


if __name__ == "__main__":
    main()
