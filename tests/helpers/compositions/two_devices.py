"""Models around an encoder or an embedding on one device and on two logical ones, as a program."""

import json

import numpy as np
import tensorflow as tf

from official.xlnet import XLNetClassifier
from official.xlnet.modeling.ops.keras import keras
from official.xlnet.runtime.distribution import create_strategy
from tests.helpers.compositions.substitution import (
    NUM_CLASSES,
    NUM_ROWS,
    SOURCES,
    Composition,
    new_source,
)

PAIRS = [("functional", "token head"), ("several", "pooling"), ("siamese", "attention")]


class OfClassifier(Composition):
    """A classifier in the place of a model of Keras."""

    def new_model(self, seed=1):
        keras.utils.set_random_seed(seed)
        model = XLNetClassifier(new_source("encoder"), NUM_CLASSES)
        model(self.inputs())
        return model


def fit(strategy, row):
    """Losses of two epochs of one step and of an evaluation, and predictions."""
    with strategy.scope():
        model = row.new_model()
        row.compile(model)
    model.set_weights([np.random.default_rng(3).normal(0, 0.3, x.shape) for x in model.weights])
    data = tf.data.Dataset.from_tensor_slices(_tuples((row.inputs(), row.labels(), row.weights())))
    data = data.batch(NUM_ROWS)
    losses = model.fit(data, epochs=2, verbose=0).history["loss"]
    losses.append(model.evaluate(data, verbose=0, return_dict=True)["loss"])
    # `predict_on_batch` of Keras gives the whole batch to each replica.
    predictions = tf.nest.flatten(model.predict(row.inputs(), NUM_ROWS, verbose=0))
    return {
        "loss": [float(x) for x in losses],
        "predictions": [x.tolist() for x in predictions],
    }


def _tuples(values):
    """Lists as tuples, as data sets take them."""
    if isinstance(values, list | tuple):
        return tuple(_tuples(x) for x in values)
    return values


if __name__ == "__main__":
    two = create_strategy("mirrored", cpu_devices=2)
    rows = [OfClassifier("functional", "pooling", "encoder")]
    for source in SOURCES:
        rows.extend(Composition(form, follow, source) for form, follow in PAIRS)
    strategies, results = (tf.distribute.get_strategy(), two), {}
    for row in rows:
        results[str(row)] = [fit(strategy, row) for strategy in strategies]
    print(json.dumps(results))
