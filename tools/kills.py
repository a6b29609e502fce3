"""Kills commands at random moments and compares what they leave, once repeated, with whole runs.

Usage: python -m tools.kills --kills=100 --output=build/kills

Each of vocab, prepare, pretrain, finetune, export, convert, `vocab --extend`, embed, predict and
score runs once without a kill. Then it is killed (SIGKILL) at a random moment, and the same command
runs to its end, half of the time stopped (SIGSTOP) for a while on the way. Its files must have the
same bytes as those of the whole run; for training, the losses and the weights must be the same.
Every second kill waits for the first finished part: a shard, a checkpoint, or whatever file the
command writes first. Half of the kills take the worker processes, too; otherwise they notice
themselves. The last line is JSON with the counts of each command:

    kills          kills that hit a running process
    with_parts     those that found finished parts, from which the second run went on
    violations     second runs that failed or gave something else; the exit status is 1 if any
"""

from __future__ import annotations

import argparse
import collections
import hashlib
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time
from typing import Any

import tensorflow as tf

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
_NUM_FILES = 24  # Of the corpus; each is a shard of `prepare`.
# What a second run goes on from. The other commands start again.
_PARTS = {
    "prepare": ".prepare/[!j]*.json",
    "pretrain": "ckpt-*.json",
    "finetune": "run/ckpt-*.json",
}
# A file or folder that is there only if the whole output is; the command would not write it again.
_WHOLE = {"export": "1", "convert": "config.json", "extend": "config.yaml"}
_DIFFERENT = {"fingerprint.pb", "sha256sums"}  # A random number, and its checksum.
_POLL_SECONDS = 0.02
_STOP_SECONDS = 1.0


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
    seconds, expected = {}, {}
    for verb, command in commands.items():  # In order: later ones read what earlier ones made.
        start, output = time.time(), root / "whole" / verb
        _finish(_start(command, output))
        # Until the last file: a kill after that would hit nothing.
        seconds[verb] = max(path.stat().st_mtime for path in output.rglob("*")) - start
        expected[verb] = _essence(verb, output)
    rng = random.Random(arguments.seed)
    counts = {verb: collections.Counter(kills=0, with_parts=0, violations=0) for verb in commands}
    for number in range(arguments.kills):
        verb = list(commands)[number % len(commands)]
        output = root / "killed" / verb
        waits = number // len(commands) % 2 == 1
        while not _kill(verb, commands[verb], output, seconds[verb], waits, rng):
            pass  # It had finished.
        counts[verb]["kills"] += 1
        counts[verb]["with_parts"] += bool(_parts(verb, output))
        try:
            if verb not in _WHOLE or not (output / _WHOLE[verb]).exists():
                process = _start(commands[verb], output)
                if rng.random() < 0.5:
                    _stop(process, rng.uniform(0, seconds[verb]))
                _finish(process)
            assert _essence(verb, output) == expected[verb], "other results than without the kill"
        except (AssertionError, OSError) as error:
            counts[verb]["violations"] += 1
            shutil.copytree(output, root / "violations" / f"{number}-{verb}")
            print(f"kill {number} of {verb}: {error}", file=sys.stderr, flush=True)
        print(f"{number + 1} of {arguments.kills} kills", file=sys.stderr, flush=True)
    print(json.dumps(counts))
    return int(any(count["violations"] for count in counts.values()))


def _commands(root: pathlib.Path) -> dict[str, list[str]]:
    """{name: the command without its output}, over a small corpus."""
    whole, corpus = root / "whole", root / "corpus.txt"
    write_corpus(str(corpus), ("scipy", "distributed"))
    documents = corpus.read_text(encoding="utf-8").split("\n\n")
    (root / "corpus").mkdir()
    for number in range(_NUM_FILES):
        text = "\n\n".join(documents[number::_NUM_FILES])
        (root / f"corpus/{number:02d}.txt").write_text(text, encoding="utf-8")
    (root / "config.yaml").write_text(_CONFIG)
    (root / "recipe.yaml").write_text(_RECIPE)
    texts = [line for document in documents for line in document.splitlines() if line]
    rows = [f"{'the' in line.split()}\t{line}" for line in texts[:_TABLE_ROWS]]
    lines = root / "lines.txt"
    lines.write_text("\n".join(texts[:_TABLE_ROWS]) + "\n", encoding="utf-8")
    (root / "table.tsv").write_text("label\ttext\n" + "\n".join(rows) + "\n", encoding="utf-8")
    config, table = f"--config={root / 'config.yaml'}", root / "table.tsv"
    text, vocab = f"--input={root / 'corpus'}/*.txt", whole / "vocab"
    return {
        "vocab": ["vocab", text, "--size=500", "--output="],
        "prepare": ["prepare", text, f"--vocab={vocab}", config, "--num_workers=2", "--output="],
        "pretrain": ["pretrain", config, f"--data={whole / 'prepare'}", "--output="],
        "finetune": [
            "finetune",
            "--task=classification",
            f"--train={table}",
            f"--dev={table}",
            f"--config={root / 'recipe.yaml'}",
            f"--vocab={vocab / 'spiece.model'}",
            "--output=",
        ],
        "export": ["export", f"--model={whole / 'finetune'}", "--version=1", "--output="],
        "convert": ["convert", f"--source={whole / 'pretrain'}", "--to=hf", "--output="],
        "extend": ["vocab", f"--extend={whole / 'pretrain'}", "--size=+20", text, "--output="],
        "embed": [
            "embed",
            f"--model={whole / 'pretrain'}",
            f"--input={lines}",
            "--output=*/out.npy",
        ],
        "score": [
            "score",
            f"--model={whole / 'pretrain'}",
            f"--input={lines}",
            "--order=random",
            "--output=*/out.jsonl",
        ],
        "predict": [
            "predict",
            f"--model={whole / 'finetune'}",
            f"--input={table}",
            "--output=*/out.jsonl",
        ],
    }


def _start(command: list[str], output: pathlib.Path) -> subprocess.Popen:
    flag, is_in, file = command[-1].partition("*")
    if is_in:
        output.mkdir(parents=True, exist_ok=True)
    line = [sys.executable, "-m", "official.xlnet.cli", *command[:-1], f"{flag}{output}{file}"]
    return subprocess.Popen(
        line, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def _stop(process: subprocess.Popen, seconds: float) -> None:
    """Stops a process and its workers for a while, after some seconds."""
    time.sleep(seconds)
    for number in (signal.SIGSTOP, signal.SIGCONT):
        if process.poll() is None:
            os.killpg(process.pid, number)
            time.sleep(_STOP_SECONDS if number == signal.SIGSTOP else 0)


def _finish(process: subprocess.Popen) -> None:
    _, errors = process.communicate()
    assert process.returncode == 0, f"status {process.returncode}: {errors[-2000:]}"


def _kill(
    verb: str,
    command: list[str],
    output: pathlib.Path,
    seconds: float,
    waits: bool,
    rng: random.Random,
) -> bool:
    """Starts a command in an empty directory and kills it.

    Args:
      verb: its name in `_commands`.
      command: the command without its output.
      output: its output directory, removed first.
      seconds: time in which a whole run writes its last file.
      waits: whether to wait for the first finished part.
      rng: source of the moment.

    Returns:
      Whether the command was still running.
    """
    shutil.rmtree(output, ignore_errors=True)
    start = time.monotonic()
    process = _start(command, output)
    while waits and process.poll() is None and not _parts(verb, output):
        time.sleep(_POLL_SECONDS)
    left = max(0.0, seconds - (time.monotonic() - start)) if waits else seconds
    time.sleep(rng.uniform(0, left))
    was_running = process.poll() is None
    if was_running and rng.random() < 0.5:
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.wait()  # Not for its workers.
    return was_running


def _parts(verb: str, output: pathlib.Path) -> list[pathlib.Path]:
    """Finished parts in the output directory; for commands without parts, any file but a lock."""
    pattern = _PARTS.get(verb, "**/*")
    return [p for p in output.glob(pattern) if p.is_file() and not p.name.startswith(".lock")]


def _essence(verb: str, output: pathlib.Path) -> object:
    """What has to be equal: losses and weights of training, bytes of everything else."""
    if verb in ("pretrain", "finetune"):
        losses = [[line["step"], line["loss"]] for line in read_history(str(output))]
        return [losses, _weights(tf.train.latest_checkpoint(str(output)))]
    return {
        str(path.relative_to(output)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(output.rglob("*"))
        if path.is_file() and path.name not in _DIFFERENT and not path.name.startswith(".")
    }


def _weights(checkpoint: str) -> dict[str, Any]:
    """{key: value} of the numbers in a checkpoint."""
    reader = tf.train.load_checkpoint(checkpoint)
    types = reader.get_variable_to_dtype_map()
    return {key: reader.get_tensor(key).tobytes() for key in types if types[key] != tf.string}


if __name__ == "__main__":
    sys.exit(main())
