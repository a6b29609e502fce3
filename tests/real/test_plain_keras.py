"""A program of plain Keras saves a model that contains our encoder; a new process loads it."""

import subprocess
import sys

import numpy as np
import tf_keras

from tests.helpers.tiny import VOCAB, tiny_encoder

LOAD = """
import numpy as np, tensorflow as tf, tf_keras
loaded = tf.saved_model.load("saved_model").signatures["serving_default"]
assert not any(name.startswith("official") for name in __import__("sys").modules)
ids = np.load("ids.npy")
[of_signature] = loaded(token_ids=tf.constant(ids)).values()
import official.xlnet
model = tf_keras.models.load_model("model.keras")
np.savez("found.npz", signature=of_signature, keras=model.predict(ids, verbose=0))
model.fit(ids, np.arange(len(ids)) % 3, verbose=0)
"""


def test_both_formats_give_the_same_in_a_new_process(tmp_path):
    ids = np.random.default_rng(0).integers(9, VOCAB, (5, 11)).astype(np.int32)
    token_ids = tf_keras.Input([11], dtype="int32", name="token_ids")
    content = tiny_encoder()({"token_ids": token_ids})["content"]
    hidden = tf_keras.layers.Dense(7, "relu")(content[:, -1])
    model = tf_keras.Model(token_ids, tf_keras.layers.Dense(3, "softmax")(hidden))
    model.compile("adam", "sparse_categorical_crossentropy")
    model.fit(ids, np.arange(5) % 3, verbose=0)
    model.save(tmp_path / "model.keras")
    model.save(tmp_path / "saved_model", save_format="tf")
    np.save(tmp_path / "ids.npy", ids)
    subprocess.run([sys.executable, "-c", LOAD], cwd=tmp_path, check=True)
    found = np.load(tmp_path / "found.npz")
    for name in ("signature", "keras"):
        np.testing.assert_allclose(found[name], model.predict(ids, verbose=0), atol=1e-5)
