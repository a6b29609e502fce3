"""A program of plain Keras trains a model that contains our encoder; a new process loads it."""

import subprocess
import sys

import numpy as np
import pytest

from official.xlnet import create_optimizer
from official.xlnet.modeling.ops.keras import IS_KERAS_3, keras
from tests.helpers.tiny import VOCAB, tiny_encoder

LOAD = """
import sys, numpy as np, tensorflow as tf
served = tf.saved_model.load("saved_model")
loaded = served.signatures["serving_default"]
assert not any(name.startswith("official") for name in sys.modules)
ids = np.load("ids.npy")
[name] = loaded.structured_input_signature[1]
[of_signature] = loaded(**{name: tf.constant(ids)}).values()
import official.xlnet  # All that Keras needs to know.
if sys.argv[1] == "3":
    import keras
    files = ["model.h5", "model.keras"]
else:
    import tf_keras as keras
    files = ["model.keras", "model.h5", "saved_model"]
found = {"signature": of_signature}
for name in files:
    model = keras.models.load_model(name)
    assert type(model.optimizer).__name__ == "AdamW"
    found[name] = model.predict(ids, verbose=0)
np.savez("found.npz", **found)
model.fit(ids, np.arange(len(ids)) % 3, verbose=0)  # Keras 3 trains no model of a .h5 file.
"""


@pytest.mark.slow
def test_every_format_gives_the_same_in_a_new_process(tmp_path, caplog):
    """With dropout, recomputation, sizes that are unknown, and a last batch with one row less."""
    keras.utils.set_random_seed(1)
    ids = np.random.default_rng(0).integers(9, VOCAB, (5, 11)).astype(np.int32)
    token_ids = keras.Input([None], dtype="int32", name="token_ids")
    encoder = tiny_encoder(dropout=0.1, dropatt=0.1, recompute="block", num_layers=1)
    content = keras.layers.GlobalAveragePooling1D()(encoder({"token_ids": token_ids})["content"])
    hidden = keras.layers.Dense(7, "relu")(content)
    model = keras.Model(token_ids, keras.layers.Dense(3, "softmax")(hidden))
    model.compile(create_optimizer(encoder.config.training, 1), "sparse_categorical_crossentropy")
    losses = model.fit(ids, np.arange(5) % 3, 3, epochs=9, verbose=0).history["loss"]
    assert losses[-1] < losses[0] / 2
    assert "Gradients do not exist" not in caplog.text
    for name in ("model.keras", "model.h5"):
        model.save(tmp_path / name)
    model.export(tmp_path / "saved_model") if IS_KERAS_3 else model.save(tmp_path / "saved_model")
    np.save(tmp_path / "ids.npy", ids)
    program = [sys.executable, "-c", LOAD, "3" if IS_KERAS_3 else "2"]
    subprocess.run(program, cwd=tmp_path, check=True)
    for found in np.load(tmp_path / "found.npz").values():
        np.testing.assert_allclose(found, model(ids), atol=1e-5)
