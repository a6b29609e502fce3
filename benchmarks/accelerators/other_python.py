"""Programs in the environment that has jax, in processes of their own."""

from __future__ import annotations

import os
import pathlib
import subprocess

PYTHON_VARIABLE = "XLNET_JAX_PYTHON"
FOLDER = pathlib.Path(__file__).parent / "jax_side"


def interpreter() -> str:
    """Returns the interpreter of the environment that has jax; ends the program without one."""
    python = os.environ.get(PYTHON_VARIABLE, "")
    if not os.path.isfile(python):
        raise SystemExit(
            f"{PYTHON_VARIABLE}: expected the interpreter of an environment with jax, got "
            f"{python!r}: `make tpu-check` makes one"
        )
    return python


def run(program: str, *arguments: str) -> str:
    """Runs a program of `jax_side`; returns its standard output.

    Raises:
      RuntimeError: the program failed.
    """
    process = subprocess.run(
        [interpreter(), str(FOLDER / program), *arguments],
        capture_output=True,
        text=True,
        env={name: v for name, v in os.environ.items() if not name.startswith("PYTHON")},
        check=False,
    )
    if process.returncode:
        raise RuntimeError(f"{program} failed:\n{process.stderr[-3000:]}{process.stdout[-1000:]}")
    return process.stdout.rstrip()
