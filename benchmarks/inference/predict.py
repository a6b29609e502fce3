"""Benchmark of `xlnet predict` on large files: speed, memory and order of predictions.

    python -m benchmarks.inference.predict --rows=100000,1000000

Fine-tunes a tiny model for one step, writes a table of each size with texts of up to 20 words, and
runs `xlnet predict` on it. Every prediction must have the id of its row. The last line of output is
JSON: {rows: seconds, rows_per_second and peak resident gigabytes}.
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile

from benchmarks.harness.command_line import flag, parse
from benchmarks.harness.models import run_xlnet

_MAX_WORDS = 20  # Words of the longest text.
_SETTINGS = (
    "model.num_layers=1",
    "model.d_model=32",
    "model.num_heads=2",
    "model.d_inner=64",
    "model.vocab_size=500",
    "model.mem_len=0",
    "training.batch_size=256",
    "training.num_steps=1",
    "training.warmup_steps=0",
    "task.max_length=32",
    "task.num_buckets=2",
)


def main() -> None:
    flags = parse(__doc__, rows=flag(["100000", "1000000"], "numbers of rows of the files"))
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        train, source = f"{folder}/train.tsv", f"{folder}/rows.tsv"
        model, output = f"{folder}/model", f"{folder}/predictions.jsonl"
        _write_rows(train, 2000)
        run_xlnet("vocab", f"--input={train}", "--format=text", f"--output={folder}", "--size=500")
        run_xlnet(
            "finetune",
            "--task=classification",
            f"--train={train}",
            f"--dev={train}",
            f"--vocab={folder}/spiece.model",
            f"--output={model}",
            *(f"--set={setting}" for setting in _SETTINGS),
        )
        for size in map(int, flags.rows):
            _write_rows(source, size)
            seconds, gigabytes = run_xlnet(
                "predict", f"--model={model}", f"--input={source}", f"--output={output}"
            )
            _check_order(output, size)
            rate = round(size / seconds)
            results[size] = {"seconds": seconds, "rows_per_second": rate, "gigabytes": gigabytes}
            print(f"{size} rows: {seconds} s, {gigabytes} GB", file=sys.stderr)
    print(json.dumps(results))


def _write_rows(path: str, number: int) -> None:
    rng = random.Random(0)
    words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=5)) for _ in range(300)]
    with open(path, "w", encoding="utf-8") as file:
        file.write("id\tlabel\ttext\n")
        for row in range(number):
            text = " ".join(rng.choices(words, k=rng.randint(1, _MAX_WORDS)))
            file.write(f"{row}\t{row % 2}\t{text}\n")


def _check_order(path: str, number: int) -> None:
    with open(path, encoding="utf-8") as file:
        ids = (json.loads(line)["id"] for line in file)
        same = (found == str(row) for row, found in enumerate(ids))
        if (right := sum(same)) != number:
            raise SystemExit(f"expected the ids of {number} rows in order, got {right}")
    os.unlink(path)


if __name__ == "__main__":
    main()
