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
import subprocess
import sys
import tempfile
from pydoc_data.topics import topics
from typing import Any

import numpy as np
from absl import app, flags, logging

from official.xlnet.cli import set_environment_defaults
from official.xlnet.runtime.cores import num_cores

FLAGS = flags.FLAGS
flags.DEFINE_enum("shape", "base", ["base", "small", "tiny"], "Name of a recipe in configs/.")
flags.DEFINE_integer("rounds", 10, "Number of turns of each implementation.")
flags.DEFINE_integer("texts", 48, "Number of texts of mixed lengths.")
flags.DEFINE_string("table", "docs/serving.md", "Document to write the tables into.")
flags.DEFINE_list(
    "storage", ["bfloat16", "float16", "int8"], "Storage dtypes of weights to measure."
)
flags.DEFINE_string("folder", None, "Folder in which to keep the models for further runs.")
flags.DEFINE_bool("only_make", False, "Whether to only create the models in --folder.")
flags.DEFINE_string("task_model", None, "Fine-tuned classifier whose accuracy to measure.")
flags.DEFINE_string("task_data", None, "Labeled data for --task_model.")

LENGTHS = (16, 64, 128, 512)
_VOCAB_SIZE = 3000
_BATCH = 16
_BEGIN, _END = "<!-- measured by benchmarks.serving -->", "<!-- end -->"


def main(argv: list[str]) -> None:
    del argv
    set_environment_defaults()
    with tempfile.TemporaryDirectory() as temporary:
        folder = FLAGS.folder or temporary
        make_models(folder)
        if FLAGS.only_make:
            return
        results = measure(folder)
    write_tables(results)
    print(json.dumps(results))


def measure(folder: str) -> dict:
    """Runs all measurements on the models in a folder."""
    versions = {weights: version_dir(folder, weights) for weights in ("float32", *FLAGS.storage)}
    rng = np.random.default_rng(0)

    def text(length: int) -> list[int]:
        return [*rng.integers(9, _VOCAB_SIZE, length - 2).tolist(), 4, 3]

    single = {length: [[text(length)]] for length in LENGTHS}
    mixed_lengths = np.clip(rng.lognormal(4.0, 1.0, FLAGS.texts), 8, 512).astype(int)
    texts = [text(int(length)) for length in mixed_lengths]
    batches = [texts[i : i + _BATCH] for i in range(0, len(texts), _BATCH)]
    in_order = sorted(texts, key=len)
    sorted_batches = [in_order[i : i + _BATCH] for i in range(0, len(texts), _BATCH)]
    results: dict = {"shape": FLAGS.shape, "cores": num_cores()}
    with contextlib.ExitStack() as stack:
        workers = {
            "ours": stack.enter_context(Worker("ours", versions["float32"])),
            "hf": stack.enter_context(Worker("hf", os.path.join(folder, "hf"))),
        }
        difference = 0.0
        results["latency"] = {}
        for length, one in single.items():
            logits = {name: worker.run(one, 3)["logits"] for name, worker in workers.items()}
            difference = max(difference, _difference(logits["ours"], logits["hf"]))
            results["latency"][length] = _latency(workers, one, repeats=10 if length < 512 else 3)
            logging.info("%d tokens: %s", length, results["latency"][length])
        logits = {name: worker.run(batches, 1)["logits"] for name, worker in workers.items()}
        results["difference"] = max(difference, _difference(logits["ours"], logits["hf"]))
        tokens = int(mixed_lengths.sum())
        results["throughput"] = {
            "ours": _throughput(workers["ours"], batches, tokens),
            "hf, as they come": _throughput(workers["hf"], batches, tokens),
            "hf, sorted by length": _throughput(workers["hf"], sorted_batches, tokens),
        }
    p50 = {length: row["ours"]["p50"] for length, row in results["latency"].items()}
    results["storage"] = measure_storage(versions, single, batches[:1], p50)
    return results


def measure_storage(
    versions: dict[str, str], single: dict[int, list], batches: list, p50: dict[int, float]
) -> dict[str, dict]:
    """Measures size, latency and accuracy for each storage dtype of weights.

    Args:
      versions: directory of the version for each dtype.
      single: a batch of one text for each length.
      batches: batches to compare logits on.
      p50: median latency of float32 in milliseconds, by length.
    """
    storage: dict[str, dict] = {}
    storage["float32"] = {
        "megabytes": _megabytes(versions["float32"]),
        "p50": p50,
        "difference": 0.0,
    }
    with Worker("ours", versions["float32"]) as worker:
        exact = worker.run(batches, 1)["logits"]
    for weights in FLAGS.storage:
        with Worker("ours", versions[weights]) as worker:
            found = worker.run(batches, 1)["logits"]
            latency = {}
            for length, one in single.items():
                worker.run(one, 2)
                seconds = worker.run(one, 10 if length < 512 else 4)["seconds"]
                latency[length] = round(1e3 * float(np.median(seconds)), 1)
        storage[weights] = {
            "megabytes": _megabytes(versions[weights]),
            "p50": latency,
            "difference": _difference(found, exact),
        }
    if FLAGS.task_model:
        for weights, row in storage.items():
            row["accuracy"] = accuracy(FLAGS.task_model, FLAGS.task_data, weights)
    return storage


def accuracy(model_dir: str, data: str, weights: str) -> float:
    """Returns the accuracy of a fine-tuned classifier as exported with `weights`."""
    import tensorflow as tf

    from data_prep.tasks.task_data import read_task
    from official.xlnet.configs.experiment import XLNetConfig
    from official.xlnet.serving.factory import create_service

    service = create_service(model_dir, weights=weights)
    serve = tf.function(service.serve_texts, autograph=False)
    signature = serve.get_concrete_function(**service.text_specs())
    examples: list[Any] = read_task(data, XLNetConfig.load(model_dir).task)[0]
    right = 0
    for start in range(0, len(examples), 4 * _BATCH):
        batch = examples[start : start + 4 * _BATCH]
        columns = zip(*(example.texts for example in batch), strict=True)
        names = service.text_names
        texts = {n: tf.constant(column) for n, column in zip(names, columns, strict=True)}
        found = signature(**texts)["label"].numpy()
        right += sum(a.decode() == b.label for a, b in zip(found, batch, strict=True))
    return right / len(examples)


def make_models(folder: str) -> None:
    """Creates the model in all formats, except those that exist already."""
    from official.xlnet.checkpoints.convert import convert
    from official.xlnet.serving.export import export

    model_dir, hf_dir = os.path.join(folder, "model"), os.path.join(folder, "hf")
    if not os.path.exists(model_dir):
        make_model(model_dir)
    if not os.path.exists(hf_dir):
        convert(model_dir, hf_dir, to="hf")
    for weights in ("float32", *FLAGS.storage):
        if not os.path.exists(version_dir(folder, weights)):
            export(model_dir, os.path.join(folder, weights), 1, weights=weights)


def version_dir(folder: str, weights: str) -> str:
    """Returns the directory of the version exported with `weights`."""
    return os.path.join(folder, weights, "1")


def make_model(model_dir: str) -> None:
    """Writes the model directory of a classifier with random weights."""
    import tensorflow as tf

    from data_prep.corpus.vocabulary import train_vocabulary
    from official.xlnet.checkpoints.model_directory import create_model_dir
    from official.xlnet.configs.experiment import XLNetConfig
    from official.xlnet.modeling.models.xlnet_task_model import XLNetTaskModel

    os.makedirs(model_dir)
    text = os.path.join(model_dir, "text.txt")
    with open(text, "w", encoding="utf-8") as file:
        file.write("\n".join(topics.values()))
    train_vocabulary([text], model_dir, _VOCAB_SIZE)
    overrides = [
        f"vocab_size={_VOCAB_SIZE}",
        *("mem_len=0", "precision=float32", "task.max_length=512"),
        *("task.name=classification", "task.labels=[bad, good]"),
    ]
    config = XLNetConfig.load(f"configs/{FLAGS.shape}.yaml", overrides)
    model = XLNetTaskModel(config)
    create_model_dir(model_dir, config, os.path.join(model_dir, "spiece.model"))
    tf.train.CheckpointManager(tf.train.Checkpoint(model=model), model_dir, 1).save()


class Worker:
    """Client of a `benchmarks.serving.worker` process."""

    def __init__(self, kind: str, path: str):
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.serving.worker", kind, path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, batches: list, repeats: int) -> dict:
        """Runs batches of token ids; see `benchmarks.serving.worker`."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps({"batches": batches, "repeats": repeats}) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *exception) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()


def _latency(workers: dict[str, Worker], one: list, repeats: int) -> dict:
    seconds: dict[str, list[float]] = {name: [] for name in workers}
    for _ in range(FLAGS.rounds):
        for name, worker in workers.items():
            seconds[name] += worker.run(one, repeats)["seconds"]
    return {
        name: {
            f"p{percent}": round(1e3 * float(np.percentile(values, percent)), 1)
            for percent in (50, 99)
        }
        for name, values in seconds.items()
    }


def _throughput(worker: Worker, batches: list, tokens: int) -> int:
    runs = [sum(worker.run(batches, 1)["seconds"]) for _ in range(3)]
    return round(tokens / float(np.median(runs)))


def _megabytes(path: str) -> float:
    paths = [os.path.join(where, name) for where, _, names in os.walk(path) for name in names]
    return round(sum(map(os.path.getsize, paths)) / 1e6, 1)


def _difference(a: list, b: list) -> float:
    return float(np.abs(np.subtract(a, b)).max())


def write_tables(results: dict) -> None:
    """Writes the tables between the markers of the document."""
    lines = [
        f"Model: `configs/{results['shape']}.yaml` with a classifier, {results['cores']} CPU "
        f"cores, float32. The maximum difference of logits is {results['difference']:.1e}.",
        "",
        "| tokens | ours p50 | ours p99 | HF p50 | HF p99 | HF / ours |",
        "|---|---|---|---|---|---|",
    ]
    for length, row in results["latency"].items():
        ours, hf = row["ours"], row["hf"]
        lines.append(
            f"| {length} | {ours['p50']} ms | {ours['p99']} ms | {hf['p50']} ms | {hf['p99']} ms "
            f"| {hf['p50'] / ours['p50']:.2f} |"
        )
    lines += ["", "| texts of mixed lengths, batches of 16 | tokens per second |", "|---|---|"]
    lines += [f"| {name} | {value} |" for name, value in results["throughput"].items()]
    head = " | ".join(f"p50 at {length}" for length in results["latency"])
    more = " accuracy |" if FLAGS.task_model else ""
    lines += ["", f"| `--weights` | size | maximum difference of logits | {head} |{more}"]
    lines.append("|---" * (3 + len(results["latency"]) + bool(more)) + "|")
    for weights, row in results["storage"].items():
        p50 = " | ".join(f"{value} ms" for value in row["p50"].values())
        line = f"| {weights} | {row['megabytes']} MB | {row['difference']:.1e} | {p50} |"
        lines.append(line + (f" {100 * row['accuracy']:.2f} % |" if more else ""))
    with open(FLAGS.table, encoding="utf-8") as file:
        before, _, rest = file.read().partition(_BEGIN)
    after = rest.partition(_END)[2]
    content = "\n".join([before + _BEGIN, "", *lines, "", _END]) + after
    with open(FLAGS.table + ".tmp", "w", encoding="utf-8") as file:
        file.write(content)
    os.replace(FLAGS.table + ".tmp", FLAGS.table)


if __name__ == "__main__":
    app.run(main)
