"""Benchmark of the input pipeline: windows per second, from records to sampled targets.

    python -m benchmarks.data.input_pipeline --shape=small --seconds=5

Batches have 16 windows, of 128 tokens with `small` and 512 with `base`. Random records are written
first. The last line is JSON:

    read_windows_per_second     reading of batches only
    windows_per_second          with sampling of targets and factorization orders
"""

from __future__ import annotations

import functools
import json
import tempfile
import time
from collections.abc import Callable

import tensorflow as tf

from benchmarks.data.random_records import write_data_set
from benchmarks.harness.command_line import flag, parse
from official.xlnet.configs.data import DataConfig
from official.xlnet.data.pretraining_dataset import pretraining_dataset
from official.xlnet.modeling.objectives import permutation_sampling

SHAPES = {"small": (128, 64, 21), "base": (512, 256, 85)}
BATCH_SIZE = 16
WARM_UP_BATCHES = 20
_FED = ("token_ids", "is_word_start", "can_be_target", "is_reversed", "epoch", "window_id")


def main() -> None:
    flags = parse(
        __doc__,
        shape=flag("small", "window size", choices=sorted(SHAPES)),
        seconds=flag(5.0, "duration of each measurement, in seconds"),
    )
    seq_len, reuse_len, num_predict = SHAPES[flags.shape]
    data = DataConfig(seq_len=seq_len, reuse_len=reuse_len, num_predict=num_predict)

    @functools.partial(tf.function, jit_compile=True)
    def sample(features):
        return permutation_sampling.sample_targets_and_order(**features, data=data, seed=0)

    with tempfile.TemporaryDirectory() as directory:
        write_data_set(directory, seq_len, reuse_len, BATCH_SIZE, windows_per_lane=500)
        dataset = pretraining_dataset(directory, BATCH_SIZE)
        uses: dict[str, Callable[[dict], object]] = {
            "read_windows_per_second": lambda batch: None,
            "windows_per_second": lambda batch: sample(
                {name: batch[name] for name in _FED}
            ).order.numpy(),
        }
        rates = {name: round(_rate(dataset, use, flags.seconds)) for name, use in uses.items()}
    print(json.dumps({"shape": flags.shape, **rates}))


def _rate(dataset, use: Callable[[dict], object], duration: float) -> float:
    """Returns the windows per second of an infinite data set, after warmup."""
    batches = iter(dataset)
    for _ in range(WARM_UP_BATCHES):
        use(next(batches))
    num_batches, start = 0, time.perf_counter()
    while (seconds := time.perf_counter() - start) < duration:
        use(next(batches))
        num_batches += 1
    return num_batches * BATCH_SIZE / seconds


if __name__ == "__main__":
    main()
