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

from absl import app, flags

from official.xlnet.cli import set_environment_defaults

SHAPES = {"small": (128, 64, 21), "base": (512, 256, 85)}
BATCH_SIZE = 16
WARM_UP_BATCHES = 20

FLAGS = flags.FLAGS
flags.DEFINE_enum("shape", "small", sorted(SHAPES), "Window size.")
flags.DEFINE_float("seconds", 5.0, "Duration of each measurement, in seconds.")
flags.DEFINE_bool("jit_compile", True, "Whether to compile target sampling with XLA.")


def main(argv: list[str]) -> None:
    del argv
    set_environment_defaults()
    import tensorflow as tf

    from benchmarks.data.random_records import write_data_set
    from official.xlnet.configs.data import DataConfig
    from official.xlnet.data.pretraining_dataset import pretraining_dataset
    from official.xlnet.modeling.objectives import permutation_sampling

    seq_len, reuse_len, num_predict = SHAPES[FLAGS.shape]
    data = DataConfig(seq_len=seq_len, reuse_len=reuse_len, num_predict=num_predict)
    fed = (
        "token_ids",
        "is_word_start",
        "can_be_target",
        "is_reversed",
        "epoch",
        "window_id",
    )

    @functools.partial(tf.function, jit_compile=FLAGS.jit_compile)
    def sample(features):
        return permutation_sampling.sample_targets_and_order(**features, data=data, seed=0)

    with tempfile.TemporaryDirectory() as directory:
        write_data_set(directory, seq_len, reuse_len, BATCH_SIZE, windows_per_lane=500)
        dataset = pretraining_dataset(directory, BATCH_SIZE)
        read_rate = _rate(dataset, lambda batch: None)
        rate = _rate(
            dataset, lambda batch: sample({name: batch[name] for name in fed}).order.numpy()
        )
    print(
        json.dumps(
            {
                "shape": FLAGS.shape,
                "read_windows_per_second": round(read_rate),
                "windows_per_second": round(rate),
            }
        )
    )


def _rate(dataset, use: Callable[[dict], object]) -> float:
    """Returns the windows per second of an infinite data set, after warmup."""
    batches = iter(dataset)
    for _ in range(WARM_UP_BATCHES):
        use(next(batches))
    num_batches, start = 0, time.perf_counter()
    while time.perf_counter() - start < FLAGS.seconds:
        use(next(batches))
        num_batches += 1
    return num_batches * BATCH_SIZE / (time.perf_counter() - start)


if __name__ == "__main__":
    app.run(main)
