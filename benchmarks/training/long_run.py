"""Memory leak and retracing test of a long training run on two replicas.

    python -m benchmarks.training.long_run [--steps=2000] [--set=key=value]

Trains `configs/tiny.yaml` on random records, on two virtual CPU devices, and prints one JSON line:
resident memory (MB) after 200 steps and at the end, its growth, and how often the step was traced.
`--set` overrides configuration keys, for instance for a shorter run.
"""

from __future__ import annotations

import json
import os
import tempfile
import threading
import time
import unittest.mock

import psutil
from absl import app, flags

from official.xlnet.cli import set_environment_defaults

_STEPS = flags.DEFINE_integer("steps", 2000, "Number of training steps.", lower_bound=400)
_SET = flags.DEFINE_multi_string("set", [], "key=value: overrides a configuration key.")
_SETTLED_STEPS = 200  # Steps before the first memory measurement.
_REPLICAS = 2


def _resident_mb() -> float:
    return psutil.Process().memory_info().rss / 2**20


def _sample(model_dir: str, samples: list[tuple[int, float]], done: threading.Event) -> None:
    """Appends (step, resident MB) every second until `done` is set."""
    from official.xlnet.runtime.history import read_history

    while not done.wait(1.0):
        samples.append((len(read_history(model_dir)), _resident_mb()))


def main(_) -> None:
    set_environment_defaults()
    from benchmarks.data.random_records import write_data_set
    from official.xlnet.configs.experiment import XLNetConfig
    from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
    from official.xlnet.training.pretraining import pretrain

    overrides = [f"num_steps={_STEPS.value}", *_SET.value]
    config = XLNetConfig.load("configs/tiny.yaml", overrides)
    data = config.data
    traces: list[float] = []  # Times at which train_step was traced, once per replica.
    train_step = XLNetPretrainer.train_step

    def traced(self, batch):
        traces.append(time.monotonic())
        return train_step(self, batch)

    samples: list[tuple[int, float]] = []
    done = threading.Event()
    with tempfile.TemporaryDirectory() as directory:
        records, model_dir = os.path.join(directory, "data"), os.path.join(directory, "model")
        write_data_set(records, data.seq_len, data.reuse_len, data.num_lanes, 40)
        sampler = threading.Thread(target=_sample, args=(model_dir, samples, done))
        sampler.start()
        try:
            with unittest.mock.patch.object(XLNetPretrainer, "train_step", traced):
                metrics = pretrain(
                    config, records, model_dir, strategy="mirrored", cpu_devices=_REPLICAS
                )
        finally:
            done.set()
            sampler.join()
    settled = next(mb for step, mb in samples if step >= _SETTLED_STEPS)
    last = samples[-1][1]
    print(
        json.dumps(
            {
                "steps": metrics["step"],
                "replicas": _REPLICAS,
                "resident_mb_after_200_steps": round(settled, 1),
                "resident_mb_at_the_end": round(last, 1),
                "growth_percent": round(100 * (last / settled - 1), 2),
                "traces_of_a_replica": len(traces) / _REPLICAS,
                "tokens_per_second": round(metrics["tokens_per_second"]),
            }
        )
    )


if __name__ == "__main__":
    app.run(main)
