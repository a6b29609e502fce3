"""Plain Keras `fit` under a distribution strategy; a program that `start_cluster` starts."""

import argparse
import json

from official import xlnet
from official.xlnet.modeling.ops.keras import keras
from official.xlnet.runtime.distribution import create_strategy


def fit(strategy, config, data_dir, num_steps, settings=()):
    """The metrics of each step of `fit`."""
    config = xlnet.XLNetConfig.load(config, list(settings))
    keras.utils.set_random_seed(0)
    with strategy.scope():
        model = xlnet.XLNetPretrainer(config)
        model.compile(xlnet.create_optimizer(config.training, config.model.num_layers))
    data = xlnet.pretraining_dataset(data_dir, config.training.batch_size, config=config)
    steps = []
    alone = keras.callbacks.LambdaCallback(
        on_train_batch_begin=lambda *_, **__: model.reset_metrics(),
        on_train_batch_end=lambda _, logs: steps.append({k: float(x) for k, x in logs.items()}),
    )
    model.fit(data, steps_per_epoch=num_steps, verbose=0, callbacks=[alone])
    return steps


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    for name, kind in (("strategy", str), ("config", str), ("data", str), ("steps", int)):
        parser.add_argument(f"--{name}", type=kind, required=True)
    parser.add_argument("--cpu_devices", type=int, default=1)
    parser.add_argument("--set", action="append", default=[])
    given = parser.parse_args()
    strategy = create_strategy(given.strategy, given.cpu_devices)
    print(json.dumps(fit(strategy, given.config, given.data, given.steps, given.set)))
