"""Benchmark of `xlnet predict` on large files: speed, memory and order of predictions.

    python -m benchmarks.inference.predict --rows=100000,1000000

Fine-tunes a tiny model for one step, writes a table of each size with texts of up to 20 words, and
runs `xlnet predict` on it. Every prediction must have the id of its row. The last line of output is
JSON: {rows: seconds, rows_per_second and peak resident gigabytes}.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile

from benchmarks.inference.convert import measure

_MAX_WORDS = 20  # Words of the longest text.
_SETTINGS = (
    *("model.num_layers=1", "model.d_model=32", "model.num_heads=2", "model.d_inner=64"),
    *("model.mem_len=0", "training.batch_size=256", "training.num_steps=1"),
    *("training.warmup_steps=0", "task.max_length=32", "task.num_buckets=2"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", default="100000,1000000", help="numbers of rows of the files")
    sizes = [int(size) for size in parser.parse_args().rows.split(",")]
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        _write_rows(f"{folder}/train.tsv", 2000)
        measure(f"vocab --input={folder}/train.tsv --output={folder} --size=500")
        settings = [*_SETTINGS, "model.vocab_size=500"]
        measure(
            f"finetune --task=classification --train={folder}/train.tsv --dev={folder}/train.tsv "
            f"--vocab={folder}/spiece.model --output={folder}/model "
            + " ".join(f"--set={setting}" for setting in settings)
        )
        for size in sizes:
            source, output = f"{folder}/rows.tsv", f"{folder}/predictions.jsonl"
            _write_rows(source, size)
            seconds, gigabytes = measure(
                f"predict --model={folder}/model --input={source} --output={output}"
            )
            _check_order(output, size)
            results[size] = {
                "seconds": seconds,
                "rows_per_second": round(size / seconds),
                "gigabytes": gigabytes,
            }
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
        count = 0
        for row, line in enumerate(file):
            if json.loads(line)["id"] != str(row):
                raise SystemExit(f"row {row}: expected the prediction of this row, got {line}")
            count += 1
    if count != number:
        raise SystemExit(f"expected {number} predictions, got {count}")
    os.unlink(path)


if __name__ == "__main__":
    main()
