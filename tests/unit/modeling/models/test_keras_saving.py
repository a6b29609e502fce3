"""Saving, loading and `predict` as Keras users know them."""

import ast
import os
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
from official.xlnet.modeling.ops import keras_names
from official.xlnet.training.optimization import create_optimizer
from tests.helpers.compiled import make_model
from tests.helpers.documents import ROOT
from tests.helpers.tiny import (
    MEMORY,
    REUSE,
    TOKENS,
    VOCAB,
    random_inputs,
    random_windows,
    tiny_config,
    tiny_encoder,
)


def batches(*seeds, rows=4):
    """A data set of windows, all of one document."""
    windows = [
        random_windows(seed, batch=rows, context_length=min(number * REUSE, MEMORY))
        for number, seed in enumerate(seeds)
    ]
    stacked = {name: tf.stack([each[name] for each in windows]) for name in windows[0]}
    return tf.data.Dataset.from_tensor_slices(stacked)


def assert_same_outputs(model, other):
    inputs = random_inputs(0, order="all", memory=MEMORY, layers=1)
    for name, value in model(inputs).items():
        np.testing.assert_array_equal(other(inputs)[name], value)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A model, and the folder where `ModelCheckpoint` left the best of its epochs, in each form."""
    folder = tmp_path_factory.mktemp("checkpoints")
    model = make_model(num_layers=1, is_random=False)
    callbacks = [
        tf_keras.callbacks.ModelCheckpoint(
            str(folder / name), monitor="val_loss", save_best_only=True, save_weights_only=weights
        )
        for name, weights in (
            ("weights", True),
            ("weights.h5", True),
            ("model.keras", False),
            ("model", False),
        )
    ]
    data = batches(0, 1)
    model.run_eagerly = True
    history = model.fit(data, validation_data=data, epochs=2, callbacks=callbacks, verbose=0)
    losses = history.history["val_loss"]
    assert losses[1] < losses[0], "the last epoch should be the best"
    return model, folder


@pytest.mark.slow
@pytest.mark.parametrize("name", ["weights", "weights.h5"])
def test_model_checkpoint_of_weights(fitted, name):
    model, folder = fitted
    other = make_model(num_layers=1)
    other.load_weights(str(folder / name))
    assert_same_outputs(model, other)


@pytest.mark.parametrize("name", ["model.keras", "model"])
def test_model_checkpoint_of_the_model(fitted, name):
    model, folder = fitted
    loaded = tf_keras.models.load_model(folder / name)
    assert isinstance(loaded, XLNetPretrainer)
    assert_same_outputs(model, loaded)
    assert loaded.optimizer.get_config() == model.optimizer.get_config()
    loaded.train_step(random_windows(0))  # A model that can be trained on.


# A process that has imported nothing of ours but the package, which loads no TensorFlow.
SCRIPT = """
import sys
import official.xlnet
assert "tensorflow" not in sys.modules and "tf_keras" not in sys.modules
import tensorflow as tf
{code}
"""


def run(code, script=SCRIPT, **environment):
    command = [sys.executable, "-c", script.format(code=code)]
    environment = {**os.environ, **environment}
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


@pytest.fixture(scope="module")
def functional(tmp_path_factory):
    """Files of a functional model with an encoder, and what it predicts."""
    folder = tmp_path_factory.mktemp("functional")
    ids = tf_keras.Input([None], dtype=tf.int32)
    encoder = tiny_encoder(num_layers=1)
    model = tf_keras.Model(ids, tf_keras.layers.Dense(3)(encoder(ids)["content"][:, -1]))
    model.compile(create_optimizer(encoder.config.training, 1), "mse")
    for name in ("model.keras", "model.h5", "model"):
        model.save(str(folder / name))
    token_ids = random_inputs(0)["token_ids"]
    np.save(folder / "ids.npy", token_ids)
    np.save(folder / "outputs.npy", model(token_ids))
    return folder


@pytest.mark.slow
def test_the_import_of_the_package_is_enough_to_load(functional, fitted):
    """In every format, whether Keras is imported before or after, whichever class comes first."""
    first = """
import numpy
assert not [name for name in sys.modules if name.startswith("official.nlp")]
"""
    in_every_format = f"""
for name in ("model.keras", "model.h5", "model"):
    model = tf.keras.models.load_model(f"{functional}/{{name}}")
    found = model(numpy.load("{functional}/ids.npy")).numpy()
    difference = abs(found - numpy.load("{functional}/outputs.npy")).max()
    print(name, type(model.layers[1]).__name__, type(model.optimizer).__name__, difference < 1e-6)
"""
    pretrainer = f"""
model = tf.keras.models.load_model("{fitted[1]}/model.keras")
print(type(model).__name__, int(model.optimizer.iterations))
"""
    lines = [f"{name} XLNetEncoder AdamW True" for name in ("model.keras", "model.h5", "model")]
    result = run(first + pretrainer + in_every_format, TF_USE_LEGACY_KERAS="1")
    assert result.stdout.splitlines() == ["XLNetPretrainer 4", *lines], result.stderr
    script = "import sys, tf_keras, official.xlnet, tensorflow as tf\n{code}"
    result = run(first + in_every_format + pretrainer, script, TF_USE_LEGACY_KERAS="1")
    assert result.stdout.splitlines() == [*lines, "XLNetPretrainer 4"], result.stderr


def test_every_registered_class_has_its_name():
    """What Keras' files may name is exactly what is registered."""
    registered = {}
    for path in sorted((ROOT / "official/xlnet").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            decorators = [ast.unparse(x) for x in getattr(node, "decorator_list", ())]
            if any("register_keras_serializable(package='xlnet')" in x for x in decorators):
                module = path.relative_to(ROOT / "official/xlnet").with_suffix("")
                registered[node.name] = ".".join(module.parts)
    assert registered == keras_names.MODULES


@pytest.mark.slow
def test_with_keras_3_the_error_names_the_variable():
    code = f"""
from official.xlnet import RelativePositionEncoding, XLNetBlock, XLNetClassifier, XLNetPretrainer
from official.xlnet.errors import ConfigError

class Subclassed(tf.keras.Model):
    def __init__(self, part):
        super().__init__()
        self.part = part
        self.head = tf.keras.layers.Dense(1)
        self.compile("sgd", "mse")

    def call(self, inputs):
        outputs = self.part(inputs)
        return self.head(outputs["content"][:, -1] if isinstance(outputs, dict) else outputs)

ids = tf.constant([[17, 42, 11], [11, 13, 12]])
model = XLNetPretrainer({tiny_config(num_layers=1).as_dict()!r})
for wrong in (
    lambda: model.compile(tf.keras.optimizers.Adam()),
    lambda: model({{"token_ids": tf.keras.Input([{TOKENS}], dtype="int32")}}),
    lambda: model.encoder(tf.keras.Input([{TOKENS}], dtype="int32")),
    lambda: RelativePositionEncoding()(tf.keras.Input([{TOKENS}, 22])),
    lambda: Subclassed(model.encoder).fit(ids, tf.zeros([2, 1])),
    lambda: Subclassed(XLNetClassifier(model.encoder, 1))(ids),
    lambda: Subclassed(XLNetBlock(2, 11, 29))(tf.zeros([2, 3, 22])),
):
    try:
        wrong()
    except ConfigError as error:
        print(repr(error))
"""
    result = run(code, TF_USE_LEGACY_KERAS="0")
    lines = result.stdout.splitlines()
    assert len(lines) == 7, result.stderr
    assert "expected an optimizer of tf_keras" in lines[0]
    assert all("expected inputs of tf_keras" in line for line in lines[1:4])
    assert all("got a call by a model or layer of Keras 3" in line for line in lines[4:])
    for line in lines:
        assert "set TF_USE_LEGACY_KERAS=1 before TensorFlow is imported" in line


def test_predict_of_windows_reads_them_as_evaluate_does():
    """Losses computed from what is returned are those of `evaluate`, memory included."""
    model = make_model(num_layers=1, num_predict=9)
    data = batches(0, 1, 2)
    predicted = model.predict(data, verbose=0)
    assert set(predicted) == {"content", "query", "logits", "labels", "target_mask"}
    assert predicted["logits"].shape == (12, 9, VOCAB)
    log_p = tf.nn.log_softmax(predicted["logits"]).numpy()
    losses = -np.take_along_axis(log_p, predicted["labels"][..., None], axis=-1)[..., 0]
    mask = predicted["target_mask"]
    assert 0 < mask.sum() < mask.size
    loss = model.evaluate(data, verbose=0)
    np.testing.assert_allclose((losses * mask).sum() / mask.sum(), loss, rtol=1e-5)
    assert not model.memory.states.numpy().any(), "the memory of training is another"
