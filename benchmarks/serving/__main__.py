"""Benchmark of an exported model: latency and throughput, compared with HF PyTorch.

    python -m benchmarks.serving --shape=base --table=docs/serving.md

Creates a classifier with random weights, exports it, converts it to the HF format, and runs both in
alternation on the same token ids, so that other load affects both alike. Writes the tables between
the markers in --table. The last line is JSON:

    latency       {length: {"ours" or "hf": {"p50": …, "p99": …}}}, milliseconds at batch size 1
    throughput    tokens per second on texts of mixed lengths
    difference    maximum absolute difference of logits
    storage       {weights: {"megabytes", "p50" by length, "difference", and with --task_model
                  "accuracy" of that model}}
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import tempfile
from typing import Any

import numpy as np

from benchmarks.harness.command_line import flag, parse
from benchmarks.harness.contest import Contestant, Worker
from benchmarks.harness.models import write_model
from benchmarks.harness.tables import fill_table, markdown_table
from official import xlnet
from official.xlnet.runtime.cores import num_cores

LENGTHS = (16, 64, 128, 512)
WEIGHTS = ("float32", "bfloat16", "float16", "int8")
_VOCAB_SIZE = 3000
_BATCH = 16

Batch = list[list[int]]  # Token ids by row.


def main() -> None:
    flags = parse(
        __doc__,
        shape=flag("base", "recipe in configs/", choices=["base", "small", "tiny"]),
        rounds=flag(10, "turns of each implementation"),
        texts=flag(48, "number of texts of mixed lengths"),
        table=flag("docs/serving.md", "document to write the tables into"),
        task_model=flag(None, "fine-tuned classifier whose accuracy to measure"),
        task_data=flag(None, "labeled data for --task_model"),
    )
    results: dict[str, Any] = {"shape": flags.shape, "cores": num_cores()}
    with tempfile.TemporaryDirectory() as folder:
        make_models(flags.shape, folder)
        results |= measure(folder, flags.rounds, flags.texts)
    if flags.task_model:
        for weights, row in results["storage"].items():
            row["accuracy"] = accuracy(flags.task_model, flags.task_data, weights)
    fill_table(flags.table, "serving", _tables(results))
    print(json.dumps(results))


def make_models(shape: str, folder: str) -> None:
    """Writes a classifier with random weights, HF's form of it, and its exports."""
    overrides = [
        f"vocab_size={_VOCAB_SIZE}",
        "mem_len=0",
        "precision=float32",
        "task.max_length=512",
        "task.name=classification",
        "task.labels=[bad, good]",
    ]
    config = xlnet.XLNetConfig.load(f"configs/{shape}.yaml", overrides)
    write_model(f"{folder}/model", xlnet.XLNetTaskModel, config)
    xlnet.convert(f"{folder}/model", f"{folder}/hf", to="hf")
    for weights in WEIGHTS:
        xlnet.export(f"{folder}/model", f"{folder}/{weights}", 1, weights=weights)


def measure(folder: str, rounds: int, num_texts: int) -> dict[str, Any]:
    """Runs all measurements on the models in a folder; see the module's docstring.

    Args:
      folder: what `make_models` wrote to.
      rounds: turns of each implementation.
      num_texts: number of texts of mixed lengths.
    """
    rng = np.random.default_rng(0)

    def text(length: int) -> list[int]:
        return [*rng.integers(9, _VOCAB_SIZE, length - 2).tolist(), 4, 3]

    single = {length: [text(length)] for length in LENGTHS}
    mixed_lengths = np.clip(rng.lognormal(4.0, 1.0, num_texts), 8, 512).astype(int)
    texts = [text(int(length)) for length in mixed_lengths]
    batches, ordered = (
        [rows[i : i + _BATCH] for i in range(0, num_texts, _BATCH)]
        for rows in (texts, sorted(texts, key=len))
    )
    versions = {weights: f"{folder}/{weights}/1" for weights in WEIGHTS}
    with _worker("ours", versions["float32"]) as ours, _worker("hf", f"{folder}/hf") as hf:
        exact, theirs = (_logits(worker, [*single.values(), *batches]) for worker in (ours, hf))
        latency = {
            length: _latency({"ours": ours, "hf": hf}, batch, rounds)
            for length, batch in single.items()
        }
        throughput = {
            "ours": _throughput(ours, batches),
            "hf, as they come": _throughput(hf, batches),
            "hf, sorted by length": _throughput(hf, ordered),
        }
    return {
        "latency": latency,
        "throughput": throughput,
        "difference": float(np.abs(exact - theirs).max()),
        "storage": {
            weights: _storage(path, single, exact[: len(LENGTHS)])
            for weights, path in versions.items()
        },
    }


def _worker(kind: str, path: str) -> contextlib.closing[Worker]:
    task = {"kind": kind, "path": path}
    return contextlib.closing(Worker(Contestant("benchmarks.serving.contestants", task)))


def _logits(worker: Worker, batches: list[Batch]) -> np.ndarray:
    return np.concatenate([worker.run(batch)["value"] for batch in batches])


def _latency(workers: dict[str, Worker], batch: Batch, rounds: int) -> dict[str, Any]:
    """Percentiles of the milliseconds of a batch, of each worker; the first turns warm up."""
    repeats = 10 if len(batch[0]) < max(LENGTHS) else 3
    seconds: dict[str, list[float]] = {name: [] for name in workers}
    for _ in range(rounds + 1):
        for name, worker in workers.items():
            seconds[name] += [worker.run(batch)["seconds"] for _ in range(repeats)]
    return {
        name: {
            f"p{percent}": round(1e3 * float(np.percentile(values[repeats:], percent)), 1)
            for percent in (50, 99)
        }
        for name, values in seconds.items()
    }


def _throughput(worker: Worker, batches: list[Batch]) -> int:
    """Tokens per second, the median of three runs."""
    runs = [sum(worker.run(batch)["seconds"] for batch in batches) for _ in range(3)]
    tokens = sum(len(row) for batch in batches for row in batch)
    return round(tokens / float(np.median(runs)))


def _storage(path: str, single: dict[int, Batch], exact: np.ndarray) -> dict[str, Any]:
    """Size, latency and accuracy of an export.

    Args:
      path: directory of the version.
      single: a batch of one text for each length.
      exact: logits of these texts in float32.
    """
    with _worker("ours", path) as worker:
        found = _logits(worker, list(single.values()))
        rows = {length: _latency({"": worker}, batch, 1) for length, batch in single.items()}
    files = filter(os.path.isfile, pathlib.Path(path).rglob("*"))
    return {
        "megabytes": round(sum(map(os.path.getsize, files)) / 1e6, 1),
        "p50": {length: row[""]["p50"] for length, row in rows.items()},
        "difference": float(np.abs(found - exact).max()),
    }


def accuracy(model_dir: str, data: str, weights: str) -> float:
    """Returns the accuracy of a fine-tuned classifier as exported with `weights`."""
    import tensorflow as tf

    from data_prep.tasks.task_data import read_task
    from official.xlnet.serving.factory import create_service

    service = create_service(model_dir, weights=weights)
    serve = tf.function(service.serve_texts, autograph=False)
    signature = serve.get_concrete_function(**service.text_specs())
    examples: list[Any] = read_task(data, xlnet.load_config(model_dir).task)[0]
    right = 0
    for start in range(0, len(examples), 4 * _BATCH):
        batch = examples[start : start + 4 * _BATCH]
        columns = map(tf.constant, zip(*(example.texts for example in batch), strict=True))
        found = signature(**dict(zip(service.text_names, columns, strict=True)))["label"].numpy()
        right += sum(a.decode() == b.label for a, b in zip(found, batch, strict=True))
    return right / len(examples)


def _tables(results: dict[str, Any]) -> str:
    """The text and the tables between the markers of the document."""
    model = (
        f"Model: `configs/{results['shape']}.yaml` with a classifier, {results['cores']} CPU "
        f"cores, float32. The maximum difference of logits is {results['difference']:.1e}."
    )
    rows: list[list[object]] = [["tokens", "ours p50", "ours p99", "HF p50", "HF p99", "HF / ours"]]
    for length, row in results["latency"].items():
        times = [f"{row[name][part]} ms" for name in ("ours", "hf") for part in ("p50", "p99")]
        rows.append([length, *times, f"{row['hf']['p50'] / row['ours']['p50']:.2f}"])
    rates = [("texts of mixed lengths, batches of 16", "tokens per second")]
    heads = [f"p50 at {length}" for length in results["latency"]]
    storage: list[list[object]] = [
        ["`--weights`", "size", "maximum difference of logits", *heads, "accuracy"]
    ]
    for weights, row in results["storage"].items():
        share = f"{100 * row['accuracy']:.2f} %" if "accuracy" in row else ""
        times = [f"{value} ms" for value in row["p50"].values()]
        sizes = [f"{row['megabytes']} MB", f"{row['difference']:.1e}"]
        storage.append([weights, *sizes, *times, share])
    tables = (rows, [*rates, *results["throughput"].items()], storage)
    return "\n" + "\n\n".join([model, *map(markdown_table, tables)]) + "\n"


if __name__ == "__main__":
    main()
