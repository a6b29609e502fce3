"""Programs in the environment that has jax, in processes of their own."""

from __future__ import annotations

import argparse
import os
import pathlib
import subprocess

PYTHON_VARIABLE = "XLNET_JAX_PYTHON"
FOLDER = pathlib.Path(__file__).parent / "jax_side"


def interpreter() -> str:
    """Returns the interpreter of the environment that has jax.

    Raises:
      ValueError: `XLNET_JAX_PYTHON` names no interpreter.
    """
    python = os.environ.get(PYTHON_VARIABLE, "")
    if not os.path.isfile(python):
        raise ValueError(
            f"{PYTHON_VARIABLE}: expected the interpreter of an environment with jax, got "
            f"{python!r}: `make tpu-check` makes one"
        )
    return python


def check(parser: argparse.ArgumentParser) -> None:
    """Ends the program with a sentence where there is no interpreter, before it works."""
    try:
        interpreter()
    except ValueError as error:
        parser.error(str(error))


def run(program: str, *arguments: str) -> str:
    """Runs a program of `jax_side`; returns its standard output.

    Raises:
      ValueError: `XLNET_JAX_PYTHON` names no interpreter.
      RuntimeError: the program failed.
    """
    python = interpreter()
    environment = {name: v for name, v in os.environ.items() if not name.startswith("PYTHON")}
    process = subprocess.run(
        [python, str(FOLDER / program), *arguments],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    if process.returncode:
        raise RuntimeError(f"{program} failed:\n{process.stderr[-3000:]}{process.stdout[-1000:]}")
    return process.stdout.rstrip()
