"""Plain Keras `fit` under a distribution strategy; a program that `start_cluster` starts."""

import argparse
import json

import tf_keras

from official import xlnet
from official.xlnet.runtime.distribution import create_strategy


class _Steps(tf_keras.callbacks.Callback):
    """Keeps the metrics of each step by itself."""

    def __init__(self):
        super().__init__()
        self.metrics = []

    def on_train_batch_begin(self, batch, logs=None):
        self.model.reset_metrics()

    def on_train_batch_end(self, batch, logs=None):
        self.metrics.append({name: float(value) for name, value in logs.items()})


def fit(strategy, config, data_dir, num_steps):
    """The metrics of each step of `fit`."""
    config = xlnet.XLNetConfig.load(config)
    tf_keras.utils.set_random_seed(0)
    with strategy.scope():
        model = xlnet.XLNetPretrainer(config)
        model.compile(xlnet.create_optimizer(config.training, config.model.num_layers))
    data = xlnet.pretraining_dataset(data_dir, config.training.batch_size, config=config)
    steps = _Steps()
    model.fit(data, steps_per_epoch=num_steps, verbose=0, callbacks=[steps])
    return steps.metrics


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    for name, kind in (("strategy", str), ("config", str), ("data", str), ("steps", int)):
        parser.add_argument(f"--{name}", type=kind, required=True)
    parser.add_argument("--cpu_devices", type=int, default=1)
    given = parser.parse_args()
    strategy = create_strategy(given.strategy, given.cpu_devices)
    print(json.dumps(fit(strategy, given.config, given.data, given.steps)))
