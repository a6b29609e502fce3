"""`summary` of each model, and the parts of an encoder by name."""

import re

import h5py
import numpy as np
import pytest
import tensorflow as tf

from official.xlnet import XLNetClassifier, XLNetPretrainer, XLNetTaskModel
from official.xlnet.errors import ConfigError
from official.xlnet.modeling.ops.keras import IS_KERAS_3, keras
from official.xlnet.tasks.preprocessor import Preprocessor
from official.xlnet.tokenization.tokenizer import Tokenizer
from tests.helpers.corpora import vocabulary_dir
from tests.helpers.tiny import tiny_config, tiny_encoder

BLOCKS = ["layer_0", "layer_1"]


def has(text, name):
    """Whether a summary has a name; `input_layer_1` is another than `layer_1`."""
    return re.search(rf"\b{name}\b", text) is not None


def functional():
    ids = keras.Input([7], dtype=tf.int32)
    encoder = tiny_encoder(mem_len=0)
    return keras.Model(ids, keras.layers.Dense(1)(encoder(ids)["content"][:, -1]))


def of_texts():
    tokenizer = Tokenizer(f"{vocabulary_dir()}/spiece.model")
    preprocessor = Preprocessor(tokenizer, tiny_config(max_length=13).task)
    return XLNetClassifier(tiny_encoder(vocab_size=tokenizer.vocab_size), 2, preprocessor)


MODELS = {
    "classifier": lambda: XLNetClassifier(tiny_encoder(mem_len=0), 3),
    "texts": of_texts,
    "task": lambda: XLNetTaskModel(tiny_config(name="classification", labels="[a, b]")),
    "pretrainer": lambda: XLNetPretrainer(tiny_config()),
    "functional": functional,
}
if IS_KERAS_3:  # tf_keras refuses a model that is not built.
    MODELS["sequential"] = lambda: keras.Sequential([tiny_encoder(mem_len=0)])


@pytest.mark.parametrize("name", MODELS)
def test_a_summary_counts_the_weights_and_lists_the_blocks(name):
    model, lines = MODELS[name](), []
    model.summary(print_fn=lambda text, line_break=True: lines.append(text))
    text = "\n".join(lines)
    assert "xlnet_encoder" in text and not any(has(text, block) for block in BLOCKS)
    if name != "sequential":
        num_weights = sum(int(np.prod(weight.shape)) for weight in model.weights)
        assert f"Total params: {num_weights}" in text.replace(",", "")
    lines.clear()
    model.summary(expand_nested=True, print_fn=lambda text, line_break=True: lines.append(text))
    text = "\n".join(lines)
    assert all(has(text, block) for block in [*BLOCKS, "word_embedding"])


def test_parts_by_name():
    encoder = tiny_encoder()
    assert encoder.get_layer("layer_1") is encoder.blocks[1]
    assert encoder.get_layer(index=0) is encoder.layers[0]
    with pytest.raises(ConfigError, match=r"get_layer: expected one of \[.*'layer_0'.*got layer_7"):
        encoder.get_layer("layer_7")


def test_files_name_the_parts_as_before(tmp_path):
    model = MODELS["classifier"]()
    model.save_weights(tmp_path / "model.weights.h5")
    with h5py.File(tmp_path / "model.weights.h5") as file:
        names = []
        file.visit(names.append)
    assert any("encoder/blocks" in name for name in names)
    assert not any("encoder/layers" in name for name in names)
