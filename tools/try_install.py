"""`make test-install`: installs the wheel without the lock file and runs the main commands.

With `--release`, a part of `make release`, the wheel is that of a folder, and the commands are
those of the README, with the recipes of the source distribution and a corpus of docstrings.

For each Python and resolution, creates an environment outside the checkout, with the newest
versions of the dependencies or the oldest of the direct ones, and runs `vocab`, `prepare`,
`pretrain`, `finetune`, `export` and `predict` on a small generated corpus. Then installs the extras
and compares the records written by Beam and from Parquet.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import pathlib
import random
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable

from tools import docstring_corpus, package

PYTHONS = ("python3.11", "python3.12", "python3.13")
RESOLUTIONS = ("highest", "lowest-direct")
EXTRAS = ("beam", "dask", "keras2", "parquet")
_UV = [sys.executable, "-m", "uv", "--quiet"]
_NOT_REACHED = "error sending request"  # Part of the error message of uv.
_OFFLINE = "SKIPPED, as no package index can be reached"
# TensorBoard is imported because it depends on pkg_resources of older setuptools.
_CHECKS = """
import importlib.util, numpy, tensorboard.default
assert importlib.util.find_spec("tf_keras") is None
print("NumPy", numpy.__version__)
"""
_TEXT_TO_PARQUET = """
import pyarrow, pyarrow.parquet
documents = open("text.txt").read().strip().split("\\n\\n")
pyarrow.parquet.write_table(pyarrow.table({"text": documents}), "text.parquet")
"""
_CONFIG = """\
model: {vocab_size: 97, num_layers: 2, d_model: 16, num_heads: 2, d_inner: 24, mem_len: 12}
data: {seq_len: 32, reuse_len: 12, num_predict: 5, num_lanes: 4, heldout_fraction: 0.1}
training: {batch_size: 4, num_steps: 3, warmup_steps: 1, checkpoint_steps: 3}
"""


# The words behind `xlnet`, and what holds for the results.
_JOBS: tuple[tuple[str, Callable[[dict], bool]], ...] = (
    ("vocab --input=text.txt --output=vocab --size=97", lambda found: found["vocab_size"] == 97),
    (
        "prepare --input=text.txt --vocab=vocab --config=tiny.yaml --output=data",
        lambda found: found["documents"] == 60 and found["heldout_windows"] > 0,
    ),
    (
        "pretrain --config=tiny.yaml --data=data --output=model",
        lambda found: found["step"] == 3 and 0 < found["loss"] < 20,
    ),
    (
        "finetune --task=classification --train=train.tsv --dev=train.tsv --init_from=model "
        "--output=task --set=task.epochs=1 --set=max_length=16",
        lambda found: 0 <= found["accuracy"] <= 1,
    ),
    (
        "export --model=task --output=exported --max_length=16",
        lambda found: "serving_default" in found["signatures"],
    ),
    (
        "predict --model=task --input=train.tsv --output=predictions.jsonl",
        lambda found: found["rows"] == 40,
    ),
)

# With tf_keras, on what `_JOBS` wrote: the words behind `xlnet`.
_JOBS_OF_KERAS_2 = (
    "pretrain --config=tiny.yaml --data=data --output=model_of_2",
    "predict --model=task --input=train.tsv --output=predictions_of_2.jsonl",
)


class InstallError(Exception):
    """A command failed in a new environment; the message ends with its output."""


def main() -> int:
    """Tests all Pythons and resolutions; returns an exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--here", action="store_true", help="only use the running interpreter")
    parser.add_argument("--resolution", nargs="+", default=RESOLUTIONS, choices=RESOLUTIONS)
    parser.add_argument(
        "--allow-offline", action="store_true", help="succeed if no package index can be reached"
    )
    parser.add_argument("--release", help="folder of the distributions to run the README with")
    arguments = parser.parse_args()
    if arguments.release:
        print(try_release(pathlib.Path(arguments.release)))
        return 0
    pythons = [sys.executable] if arguments.here else list(filter(_runs, PYTHONS))
    for python in [] if arguments.here else sorted({*PYTHONS} - {*pythons}):
        print(f"{python}: SKIPPED, as it is not on the PATH")
    failed = not pythons
    with tempfile.TemporaryDirectory() as directory:
        _, wheel = package.build(pathlib.Path(directory))
        for python, resolution in itertools.product(pythons, arguments.resolution):
            start = time.monotonic()
            try:
                report = try_install(wheel, python, resolution)
            except InstallError as error:
                is_offline = _NOT_REACHED in str(error)
                failed |= not (is_offline and arguments.allow_offline)
                report = _OFFLINE if is_offline else f"FAILED: {error}"
            seconds = time.monotonic() - start
            print(f"{python} {resolution}: {report} ({seconds:.0f} s)", flush=True)
    return int(failed)


def try_install(wheel: pathlib.Path, python: str, resolution: str) -> str:
    """Installs a wheel into a new environment and runs the main commands there.

    Args:
      wheel: path of the wheel.
      python: interpreter to create the environment with.
      resolution: resolution strategy of uv, one of `RESOLUTIONS`.

    Returns:
      A one-line report.

    Raises:
      InstallError: the installation or a command failed.
    """
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        programs = directory / "environment/bin"
        _run([*_UV, "venv", "--python", shutil.which(python) or python, programs.parent], directory)
        install = ["pip", "install", "--python", programs / "python", "--resolution", resolution]
        # uv does not treat the dependencies of a wheel as direct ones, but those of a project.
        install += [wheel, "--requirements", package.ROOT / "pyproject.toml"]
        _run([*_UV, *install], directory)
        report = _run([programs / "python", "-c", _CHECKS], directory).strip()
        run_jobs(programs, directory)
        _run([*_UV, *install, *(f"--extra={extra}" for extra in EXTRAS)], directory)
        run_jobs_with_extras(programs, directory)
    return f"{report}; all commands passed"


def try_release(folder: pathlib.Path) -> str:
    """Installs a wheel into an empty environment and runs the README's commands there.

    Args:
      folder: where `make release` has written the distributions.

    Returns:
      A one-line report.

    Raises:
      InstallError: the installation or a command failed, or nothing was learned.
    """
    sdist, wheel = (path.resolve() for path in package.paths(folder))
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        _run([*_UV, "venv", "--python", sys.executable, "environment"], directory)
        python = directory / "environment/bin/python"
        _run([*_UV, "pip", "install", "--python", python, wheel], directory)
        with tarfile.open(sdist) as archive:
            archive.extractall(directory, filter="data")
        (directory / sdist.name.removesuffix(".tar.gz") / "configs").rename(directory / "configs")
        (directory / "corpus").mkdir()
        docstring_corpus.write_corpus(str(directory / "corpus/text.txt"))
        results: dict = {}
        for verb, *words in readme_commands():
            output = _run([directory / "environment/bin/xlnet", verb, *words], directory)
            results |= json.loads(output.splitlines()[-1])
    if not results["loss"] < results["unigram_loss"]:
        raise InstallError(f"expected a loss below that of unigrams, got {results}")
    return (
        f"The README's commands ran from {wheel.name} in an empty environment: held-out loss "
        f"{results['loss']:.3f}, unigrams {results['unigram_loss']:.3f}"
    )


def readme_commands() -> list[list[str]]:
    """The words of the README's first commands behind `xlnet`, from a text to a model."""
    text = (package.ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    block = next(block for block in blocks if "xlnet vocab" in block)
    return [shlex.split(line)[1:] for line in block.replace("\\\n", " ").splitlines()]


def run_jobs(programs: pathlib.Path, directory: pathlib.Path) -> None:
    """Runs the main commands on a small corpus and checks their results.

    Args:
      programs: directory of the executables of the environment.
      directory: directory to write to.

    Raises:
      InstallError: a command failed or returned unexpected results.
    """
    write_data(directory)
    for words, holds in _JOBS:
        output = _run([programs / "xlnet", *words.split()], directory)
        results = json.loads(output.splitlines()[-1])
        if not holds(results):
            raise InstallError(f"unexpected results {results}")


def run_jobs_with_extras(programs: pathlib.Path, directory: pathlib.Path) -> None:
    """Writes the records again, with Beam and from Parquet, and predicts with tf_keras.

    Args:
      programs: directory of the executables of the environment.
      directory: directory that `run_jobs` wrote to.

    Raises:
      InstallError: a command failed, or records or predictions differ.
    """
    prepare = [programs / "xlnet", "prepare", "--vocab=vocab", "--config=tiny.yaml"]
    _run([*prepare, "--input=text.txt", "--output=beam", "--runner=DirectRunner"], directory)
    _run([programs / "python", "-c", _TEXT_TO_PARQUET], directory)
    _run([*prepare, "--input=text.parquet", "--output=parquet"], directory)
    expected = {path.name: path.read_bytes() for path in directory.glob("data/*.tfrecord")}
    for output in ("beam", "parquet"):
        found = {path.name: path.read_bytes() for path in directory.glob(f"{output}/*.tfrecord")}
        if not expected or found != expected:
            raise InstallError(f"the records in {output} differ from those in data")
    _run([programs / "python", "-c", "import apache_beam.runners.dask.dask_runner"], directory)
    for words in _JOBS_OF_KERAS_2:
        _run([programs / "xlnet", *words.split()], directory, TF_USE_LEGACY_KERAS="1")
    files = (directory / f"predictions{name}.jsonl" for name in ("", "_of_2"))
    pairs = zip(*([*map(json.loads, file.open())] for file in files), strict=True)
    if not all(_are_close(*(row["probabilities"] for row in pair)) for pair in pairs):
        raise InstallError("the predictions of tf_keras differ from those of Keras 3")


def write_data(directory: pathlib.Path) -> None:
    """Writes a random corpus, a labeled table and the configuration of a tiny model."""
    rng = random.Random(1)
    words = ["".join(rng.choices("abcdefghijklmnop", k=rng.randint(2, 6))) for _ in range(80)]

    def sentence() -> str:
        return " ".join(rng.choices(words, k=rng.randint(4, 12))).capitalize() + "."

    documents = ["\n".join(sentence() for _ in range(rng.randint(4, 9))) for _ in range(60)]
    rows = [f"{label}\t{sentence()}" for label in 20 * ["good", "bad"]]
    (directory / "text.txt").write_text("\n\n".join(documents) + "\n", encoding="utf-8")
    (directory / "train.tsv").write_text("\n".join(["label\ttext", *rows, ""]), encoding="utf-8")
    (directory / "tiny.yaml").write_text(_CONFIG, encoding="utf-8")


def _runs(python: str) -> bool:
    """Whether an interpreter exists and runs, which shims of version managers may not."""
    path = shutil.which(python)
    return path is not None and subprocess.run([path, "-V"], capture_output=True).returncode == 0


def _are_close(one: dict[str, float], other: dict[str, float]) -> bool:
    return one.keys() == other.keys() and all(abs(one[x] - other[x]) < 1e-5 for x in one)


def _run(command: list, directory: str | pathlib.Path, **variables: str) -> str:
    """Runs a command outside the checkout; returns its standard output."""
    ours = ("PYTHONPATH", "TF_USE_LEGACY_KERAS")
    environment = {name: text for name, text in os.environ.items() if name not in ours} | variables
    words = list(map(str, command))
    done = subprocess.run(words, cwd=directory, env=environment, capture_output=True, text=True)
    if done.returncode:
        said = (done.stdout + done.stderr).strip()[-2000:]
        raise InstallError(f"{' '.join(words)}: status {done.returncode}\n{said}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
