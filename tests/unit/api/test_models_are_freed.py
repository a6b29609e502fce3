"""Nothing keeps a model alive that its user has let go of: no registry, no cache, no thread."""

import gc
import random
import weakref

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.framework import ops

from official import xlnet
from official.xlnet.modeling.layers.losses import cross_entropy
from official.xlnet.modeling.ops.keras import keras
from tests.helpers.task_corpora import labelled
from tests.helpers.tiny import random_inputs, random_windows, tiny_config

ROWS = [(text, label) for label, text in labelled(random.Random(0), 14)]
SETTINGS = ("num_steps=2", "warmup_steps=0", "checkpoint_steps=1", "batch_size=7")
TEXTS = ["now and then", "the water they find", "now"]


@pytest.fixture(scope="module")
def paths(world):
    return {"lm": world.pretrained, "tuned": world.task("classification").model}


def fit(config, **arguments):
    model = xlnet.XLNetPretrainer(config)
    model.compile("adam", **arguments)
    model.fit(tf.data.Dataset.from_tensors(random_windows(0, context_length=0)), verbose=0)


RECOMPUTED = tiny_config(dropout=0.1, dropatt=0.1, recompute="attention")


def differentiate(run):
    encoder = xlnet.XLNetEncoder(tiny_config(dropout=0.1, dropatt=0.1, recompute="block"))

    @run
    def step(inputs):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(encoder(inputs, training=True)["query"])
        return tape.gradient(loss, encoder.trainable_variables)

    step({name: tf.constant(value) for name, value in random_inputs(0).items()})


def classify(paths, path):
    """Fits, predicts, saves and loads a Keras model."""
    model = xlnet.XLNetClassifier(xlnet.load_encoder(paths["lm"]), 2)
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    ids = np.random.default_rng(0).integers(9, 200, [6, 11]).astype(np.int32)
    inputs = {"token_ids": ids, "is_padding": np.zeros([6, 11], bool)}
    model.fit(inputs, np.arange(6) % 2, batch_size=3, verbose=0)
    model.predict(inputs, verbose=0)
    model.save(f"{path}/model.keras")
    keras.models.load_model(f"{path}/model.keras").predict(inputs, verbose=0)


CASES = {
    "load_encoder": lambda paths, _: xlnet.load_encoder(paths["lm"]),
    "load_pretrainer": lambda paths, _: xlnet.load_pretrainer(paths["lm"]),
    "score": lambda paths, _: xlnet.score(paths["lm"], TEXTS),
    "score, pseudo": lambda paths, _: xlnet.score(paths["lm"], TEXTS, "pseudo"),
    "generate": lambda paths, _: xlnet.generate(paths["lm"], TEXTS, 3),
    "fill_blanks": lambda paths, _: xlnet.fill_blanks(paths["lm"], ["the ____ they"]),
    "embed": lambda paths, _: xlnet.embed(paths["lm"], TEXTS * 20),
    "predict": lambda paths, _: xlnet.predict(paths["tuned"], TEXTS),
    "ensemble": lambda paths, _: xlnet.predict([paths["tuned"]] * 2, TEXTS),
    "evaluate": lambda paths, _: xlnet.evaluate(paths["tuned"], ROWS),
    "export": lambda paths, path: xlnet.export(paths["tuned"], f"{path}/export"),
    "finetune": lambda paths, path: xlnet.finetune(
        paths["lm"], ROWS, ROWS, f"{path}/model", overrides=SETTINGS
    ),
    "pretrainer, fit": lambda *_: fit(RECOMPUTED),
    "pretrainer, run_eagerly": lambda *_: fit(RECOMPUTED, run_eagerly=True),
    "classifier": classify,
    "tape, eager": lambda *_: differentiate(lambda step: step),
    "tape, graph": lambda *_: differentiate(tf.function),
}
EVERY_TIME = {"load_encoder", "predict", "pretrainer, fit"}


def alive():
    """Layers, models and variables, by their address."""
    gc.collect()
    kinds = (keras.layers.Layer, tf.Variable)
    found = [x for x in gc.get_objects() if issubclass(type(x), kinds)]
    return {id(x): weakref.ref(x) for x in found}


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name in EVERY_TIME else pytest.mark.nightly) for name in CASES],
)
def test_nothing_is_left(name, paths, tmp_path):
    before, entries = alive(), set(ops.gradient_registry.list())
    CASES[name](paths, tmp_path)
    left = [x() for key, x in alive().items() if key not in before or before[key]() is not x()]
    assert [f"{type(x).__name__} {x.name}" for x in left] == []
    kernels = {name for name in ops.gradient_registry.list() if name.startswith("CustomGradient")}
    assert kernels <= entries


@pytest.mark.parametrize("has_our_kernel", [False, True])
@pytest.mark.slow
def test_the_graph_of_a_stranger_keeps_its_gradient(has_our_kernel):
    """A copy of a graph looks its custom gradient up by name, also when the graph is gone.

    So do further copies, beside a kernel of ours or after one.
    """

    @tf.custom_gradient
    def fivefold(x):
        return tf.identity(x), lambda upstream: 5 * upstream

    graph = tf.Graph()
    with graph.as_default():
        fivefold(tf.compat.v1.placeholder(tf.float32, [], "x"))
        definition = graph.as_graph_def(add_shapes=True)
        output = graph.get_operations()[-1].name
    del graph
    gc.collect()
    logits, labels = tf.ones([2, 3, 7]), tf.ones([2, 3], tf.int32)

    def gradient(x):
        [y] = tf.graph_util.import_graph_def(definition, {"x": x}, [f"{output}:0"])
        if has_our_kernel:
            y += 0.0 * tf.reduce_sum(cross_entropy(logits, labels))
        return tf.gradients(y, x)

    for _ in range(2):
        wrapped = tf.compat.v1.wrap_function(gradient, [tf.TensorSpec([])])
        np.testing.assert_allclose(wrapped(tf.constant(3.0)), [5.0])
        del wrapped
        gc.collect()
