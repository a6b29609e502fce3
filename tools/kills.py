"""Kills commands at random moments and compares what they leave, once repeated, with whole runs.

Usage: python -m tools.kills --kills=100 --output=build/kills

Each of vocab, prepare, pretrain, finetune and export runs once without a kill. Then it is killed
(SIGKILL) at a random moment, and the same command runs to its end: the files that matter have to
have the same bytes, the losses to be the same. Prints one JSON object with the counts.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import time

from official.xlnet.runtime.history import read_history
from tools.docstring_corpus import write_corpus

_CONFIG = """\
model: {vocab_size: 500, num_layers: 2, d_model: 32, num_heads: 2, d_inner: 64, mem_len: 16}
data: {seq_len: 64, reuse_len: 32, num_predict: 10, num_lanes: 4}
training: {batch_size: 4, num_steps: 30, warmup_steps: 5, checkpoint_steps: 3, seed: 1}
"""
_RECIPE = """\
model: {vocab_size: 500, num_layers: 1, d_model: 32, num_heads: 2, d_inner: 64, mem_len: 0}
training: {batch_size: 8, num_steps: 30, warmup_steps: 0, checkpoint_steps: 5}
task: {max_length: 32, num_buckets: 1}
"""
_TABLE_ROWS = 60


def main() -> int:
    """Runs the comparison; returns 1 if a killed command gave something else."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100, help="number of kills, over all commands")
    parser.add_argument("--output", default="build/kills", help="output directory, removed first")
    parser.add_argument("--seed", type=int, default=0, help="seed of the moments")
    arguments = parser.parse_args()
    root = pathlib.Path(arguments.output).absolute()
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    commands = _commands(root)
    durations = {}
    for verb, command in commands.items():  # In order: later ones read what earlier ones made.
        start = time.monotonic()
        _run(command, root / "whole" / verb)
        durations[verb] = time.monotonic() - start
    rng = random.Random(arguments.seed)
    violations = []
    for number in range(arguments.kills):
        verb = list(commands)[number % len(commands)]
        output = root / "killed" / verb
        shutil.rmtree(output, ignore_errors=True)
        seconds = rng.uniform(0, durations[verb])
        process = _start(commands[verb], output)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        _run(commands[verb], output)
        if _essence(verb, output) != _essence(verb, root / "whole" / verb):
            violations.append({"verb": verb, "seconds": round(seconds, 2)})
    print(json.dumps({"kills": arguments.kills, "violations": violations}))
    return int(bool(violations))


def _commands(root: pathlib.Path) -> dict[str, list[str]]:
    """{verb: its arguments without the output}, over a small corpus."""
    whole, corpus = root / "whole", root / "corpus.txt"
    write_corpus(str(corpus), ("distributed",))
    (root / "config.yaml").write_text(_CONFIG)
    (root / "recipe.yaml").write_text(_RECIPE)
    lines = [line for line in corpus.read_text(encoding="utf-8").splitlines() if line]
    rows = [f"{'the' in line.split()}\t{line}" for line in lines[:_TABLE_ROWS]]
    (root / "table.tsv").write_text("label\ttext\n" + "\n".join(rows) + "\n", encoding="utf-8")
    config, table = f"--config={root / 'config.yaml'}", root / "table.tsv"
    vocab = whole / "vocab"
    return {
        "vocab": [f"--input={corpus}", "--size=500", "--output="],
        "prepare": [f"--input={corpus}", f"--vocab={vocab}", config, "--output="],
        "pretrain": [config, f"--data={whole / 'prepare'}", "--model_dir="],
        "finetune": [
            *("--task=classification", f"--train={table}", f"--dev={table}"),
            *(f"--config={root / 'recipe.yaml'}", f"--vocab={vocab / 'spiece.model'}"),
            "--output=",
        ],
        "export": [f"--model={whole / 'finetune'}", "--version=1", "--output="],
    }


def _start(command: list[str], output: pathlib.Path) -> subprocess.Popen:
    verb, *arguments = output.name, *command
    arguments[-1] += str(output)
    line = [sys.executable, "-m", "official.xlnet.cli", verb, *arguments]
    return subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def _run(command: list[str], output: pathlib.Path) -> None:
    """Runs a command to its end; exits if it fails."""
    if output.name == "export" and (output / "1").exists():
        return  # The version was there before the kill, whole, and is not written again.
    process = _start(command, output)
    _, errors = process.communicate()
    if process.returncode:
        sys.exit(f"{output.name} ended with status {process.returncode}: {errors.decode()[-2000:]}")


def _essence(verb: str, output: pathlib.Path) -> object:
    """What has to be equal: losses of training, bytes of everything else."""
    if verb in ("pretrain", "finetune"):
        return [[line["step"], line["loss"]] for line in read_history(str(output))]
    folder = output / "1" / "variables" if verb == "export" else output
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and os.path.basename(path) != ".lock" and ".tmp" not in path.name
    }


if __name__ == "__main__":
    sys.exit(main())
