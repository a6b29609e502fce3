"""Plain `fit` on one device and on two logical ones; a program, which prints its results."""

import json

import numpy as np
import tensorflow as tf

from official import xlnet
from official.xlnet.modeling.ops.keras import keras
from official.xlnet.runtime.distribution import create_strategy
from tests.helpers.tiny import random_windows, randomize, tiny_config, tiny_encoder

SETTINGS = {"num_layers": 1, "warmup_steps": 0, "clip_norm": 0.5}


def pretrainer(**arguments):
    config = tiny_config(**SETTINGS)
    model = xlnet.XLNetPretrainer(config)
    model.compile(xlnet.create_optimizer(config.training, 1), **arguments)
    return model, random_windows(0)


def classifier(optimizer):
    model = xlnet.XLNetClassifier(tiny_encoder(**SETTINGS), num_classes=3)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer(model.config), loss, ["sparse_categorical_accuracy"])
    ids = tf.random.stateless_uniform([4, 11], [0, 1], 9, 53, tf.int32)
    return model, (ids, tf.constant([0, 1, 2, 1]))


CASES = {
    "several steps": lambda: pretrainer(steps_per_execution=2),
    "own optimizer": lambda: classifier(lambda c: xlnet.create_optimizer(c.training, 1)),
    "clipping of Keras": lambda: classifier(lambda _: keras.optimizers.SGD(0.5, clipnorm=0.05)),
}


def fit(strategy, case):
    """Losses of each execution and of an evaluation, and all weights."""
    with strategy.scope():
        model, batch = CASES[case]()
    randomize(model.trainable_variables, seed=3, scale=0.1)
    losses = []
    each = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: losses.append(float(logs["loss"]))
    )
    data = tf.data.Dataset.from_tensors(batch)
    model.fit(data.repeat(4), steps_per_epoch=4, verbose=0, callbacks=[each])
    losses.append(float(model.evaluate(data, verbose=0, return_dict=True)["loss"]))
    return losses, [np.asarray(variable).tolist() for variable in model.trainable_variables]


if __name__ == "__main__":
    two = create_strategy("mirrored", cpu_devices=2)
    strategies = {"one": tf.distribute.get_strategy(), "two": two}
    print(json.dumps({c: {name: fit(s, c) for name, s in strategies.items()} for c in CASES}))
