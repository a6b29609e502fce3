"""All that tests do on two logical devices of one process; a program, which prints its results."""

import json
import sys

import numpy as np
import tensorflow as tf

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
from official.xlnet.modeling.ops.keras import IS_KERAS_3
from official.xlnet.runtime.distribution import create_strategy
from official.xlnet.training.optimization import OPTIMIZERS, create_optimizer
from tests.helpers.world import command


def sum_over_replicas(size, cpu_devices):
    """The sums over replicas of ones, with a function and strategy of its own."""
    strategy = create_strategy("mirrored", cpu_devices)
    add = lambda: tf.distribute.get_replica_context().all_reduce("SUM", tf.ones([size]))  # noqa: E731
    total = tf.function(lambda: strategy.run(add))()
    return strategy.experimental_local_results(total)[0].numpy().tolist()


def differing_after_updates(optimizer, path):
    """Names of the variables that differ between replicas after updates by gradients that do."""
    config = XLNetConfig.load(path, [f"training.optimizer={optimizer}"])
    strategy = create_strategy("mirrored")
    with strategy.scope():
        model = XLNetPretrainer(config)
        model.compile(create_optimizer(config.training, config.model.num_layers))
        model.optimizer.build(model.trainable_variables)

    def update(step):
        replica = tf.cast(tf.distribute.get_replica_context().replica_id_in_sync_group, tf.int32)
        seeds = [tf.stack([step, 2 * n + replica]) for n in range(len(model.trainable_variables))]
        shapes = [variable.shape for variable in model.trainable_variables]
        model.update(
            [tf.random.stateless_normal(*pair) for pair in zip(shapes, seeds, strict=True)]
        )

    run = tf.function(lambda step: strategy.run(update, (step,)), autograph=False)
    before = [variable.numpy() for variable in model.trainable_variables]
    for step in range(3):
        run(tf.constant(step))
    for variable, first in zip(model.trainable_variables, before, strict=True):
        assert not np.array_equal(variable.numpy(), first), variable.name
    variables = [*model.trainable_variables, *model.optimizer.variables]
    of_tf = [variable.value if IS_KERAS_3 else variable for variable in variables]
    return [v.name for v in of_tf if not np.array_equal(*(x.numpy() for x in v.values))]


if __name__ == "__main__":
    config, data, model_dir, steps = sys.argv[1:]
    sums = [sum_over_replicas(size, devices) for size, devices in ((3, 2), (5, 1), (2, 1))]
    flags = {"config": config, "data": data, "output": model_dir, "steps": steps}
    results = command("pretrain", "--strategy=mirrored", "--cpu_devices=2", **flags)
    names = [name for name in OPTIMIZERS if name != "adamw"]
    differing = {name: differing_after_updates(name, config) for name in names}
    print(json.dumps({**results, "sums": sums, "differing": differing}))
