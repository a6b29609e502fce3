"""Fine-tuning a base-sized classifier: seconds of an epoch, beside transformers' Trainer.

    python -m benchmarks.training.finetuning --short=200 --long=20 --epochs=2

The texts are random tokens, most of them short (12 to 60 tokens) and some long (512). All have the
same rows, batches of as many rows, AdamW with the same settings, clipping, dropout, and a model of
XLNet's base size with random weights; the libraries decide how rows are padded and batched: ours in
buckets of lengths, `Trainer` grouped by length, over as many rows as it ever does, and padded to
the longest of a batch, which is its fastest mode. A first epoch, which traces and compiles, is not
timed. One runs after the other, each in a process of its own: together they would need too much
memory. The last line is JSON: seconds of an epoch and of the first one, and peak gigabytes.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from typing import Any

import numpy as np

from benchmarks.harness.command_line import flag, parse
from benchmarks.harness.contest import Contestant, compete
from benchmarks.harness.tables import fill_table, markdown_table
from benchmarks.harness.worker import Work
from benchmarks.harness.workload import BASE3, CLS, FIRST_TOKEN, SEP, Shape, config_of
from official.xlnet.runtime.cores import num_cores

_PEER = "benchmarks.training.peers.hf_trainer"
_MAX_LENGTH = 512
_SHORT = 12, 60
# {name: (title, module, options of its `build`)}
CONTESTANTS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "ours": ("ours", __spec__.name, {}),
    "ours_bfloat16": ("ours, bfloat16 products", __spec__.name, {"products": "bfloat16"}),
    "ours_lora": ("ours, LoRA of rank 8", __spec__.name, {"lora_rank": 8}),
    "trainer": ("transformers' `Trainer`", _PEER, {}),
    "trainer_bfloat16": ("`Trainer`, bfloat16", _PEER, {"bfloat16": True}),
    "trainer_compile": ("`Trainer`, `torch.compile`", _PEER, {"compile": True}),
}


def rows_of(num_short: int, num_long: int, vocab_size: int) -> list[np.ndarray]:
    """Returns int32 token ids of texts, each with SEP and CLS at its end, in a random order.

    Args:
      num_short: number of texts of 12 to 60 tokens.
      num_long: number of texts of 512 tokens.
      vocab_size: ids are below it.
    """
    rng = np.random.default_rng(0)
    lengths = [*rng.integers(*_SHORT, num_short), *[_MAX_LENGTH] * num_long]
    rows = []
    for length in rng.permutation(lengths):
        tokens = rng.integers(FIRST_TOKEN, vocab_size, length - 2)
        rows.append(np.array([*tokens, SEP, CLS], np.int32))
    return rows


def build(
    shape: dict, num_short: int, num_long: int, products: str = "float32", lora_rank: int = 0
) -> Work:
    """Builds an epoch of ours; see `contest`.

    Args:
      shape: fields of `Shape`.
      num_short: number of short texts.
      num_long: number of long ones.
      products: value of `training.products`.
      lora_rank: rank of adapters; 0 trains all weights.
    """
    from benchmarks.training.ours import finetuner
    from official.xlnet.inference.task_prediction import unit_lengths
    from official.xlnet.modeling.kernels.product_type import matmul_precision
    from official.xlnet.runtime.distribution import limit_threads, release_memory
    from official.xlnet.tasks.batching import TrainingBatches, Unit

    sizes = Shape(**shape)
    config = config_of(sizes, {"products": products, "lora_rank": lora_rank})
    limit_threads(config.training)
    release_memory(config.training)
    num_buckets = type(config.task)().num_buckets
    model, _ = finetuner(sizes, config, num_buckets=num_buckets)
    lengths = unit_lengths(config)
    units = []
    for n, ids in enumerate(rows_of(num_short, num_long, sizes.vocab_size)):
        segments = np.zeros_like(ids)
        segments[-1] = 2
        sequence = {"token_ids": ids, "segment_ids": segments}
        units.append(Unit([sequence], {"label": np.array(n % 2, np.int32)}))
    batches = TrainingBatches(units, lengths[-1], lengths, sizes.batch_size, seed=0, shortest=0)
    model.training_lengths = tuple(batches.lengths)
    steps = batches.steps_per_epoch
    data = iter(batches.dataset(0))
    model.make_train_function()
    step: Any = model.train_function

    def epoch() -> float:
        with matmul_precision(products):  # It is traced in the first one.
            return [float(step(data)["loss"]) for _ in range(steps)][-1]

    return Work(epoch, sum(variable.shape.num_elements() for variable in model.trainable_variables))


def main() -> None:
    flags = parse(
        __doc__,
        short=flag(200, "number of short texts"),
        long=flag(20, "number of long texts"),
        layers=flag(12, "number of layers"),
        batch_size=flag(8, "rows of a batch; 8 is the default of `Trainer`"),
        epochs=flag(1, "timed epochs of each"),
        contestants=flag([*CONTESTANTS], f"which of {', '.join(CONTESTANTS)} to time"),
        table=flag(None, "document to write the table into"),
    )
    shape = dataclasses.replace(
        BASE3,
        num_layers=flags.layers,
        seq_len=_MAX_LENGTH,
        batch_size=flags.batch_size,
        mem_len=0,
        reuse_len=0,
        num_predict=1,
    )
    data = {"num_short": flags.short, "num_long": flags.long}
    found = {}
    for name in flags.contestants:
        _, module, options = CONTESTANTS[name]
        task = {"shape": dataclasses.asdict(shape), **data, **options}
        for result in compete({name: Contestant(module, task)}, flags.epochs, 1).values():
            found[name] = {
                "seconds": round(result["seconds"], 1),
                "first_seconds": round(result["warm_up_seconds"], 1),
                "peak_gigabytes": round(result["peak_bytes"] / 1e9, 2),
            }
            print(json.dumps({name: found[name]}), file=sys.stderr, flush=True)
    if flags.table:
        fill_table(flags.table, "finetuning", _table(found, flags))
    print(json.dumps(found))


def _table(results: dict[str, dict[str, float]], flags: Any) -> str:
    rows: list[tuple[str, ...]] = [
        ("", "seconds of an epoch", "seconds of the first", "peak memory, GB")
    ]
    for name, result in results.items():
        title, *_ = CONTESTANTS[name]
        rows.append((title, *(f"{value:.1f}" for value in result.values())))
    text = (
        f"{flags.short} texts of {_SHORT[0]} to {_SHORT[1]} tokens and {flags.long} of "
        f"{_MAX_LENGTH}, {flags.layers} layers of XLNet-base, batches of {flags.batch_size}, "
        f"CPU cores: {num_cores()}"
    )
    return f"{text}:\n\n{markdown_table(rows)}"


if __name__ == "__main__":
    main()
