"""Saving, loading and `predict` as Keras users know them, and what checkpoints are called."""

import ast
import inspect
import json
import os
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from official.xlnet.errors import ConfigError
from official.xlnet.modeling.layers.feed_forward import FeedForward
from official.xlnet.modeling.layers.lm_head import LMHead
from official.xlnet.modeling.layers.relative_attention import (
    RelativeBiases,
    TwoStreamRelativeAttention,
)
from official.xlnet.modeling.layers.relative_position import RelativePositionEncoding
from official.xlnet.modeling.layers.relative_segment import RelativeSegmentEncoding
from official.xlnet.modeling.layers.two_stream_mask import TwoStreamAttentionMask
from official.xlnet.modeling.layers.xlnet_block import ResidualNorm, XLNetBlock
from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
from official.xlnet.modeling.networks.xlnet_encoder import XLNetEncoder
from official.xlnet.modeling.ops import keras_names
from official.xlnet.modeling.ops.keras import IS_KERAS_3, keras
from tests.helpers.compare import path_of
from tests.helpers.compiled import make_model
from tests.helpers.documents import ROOT
from tests.helpers.package.of_projects import rows
from tests.helpers.tiny import (
    MEMORY,
    REUSE,
    TOKENS,
    VOCAB,
    random_inputs,
    random_windows,
    stacked,
    tiny_config,
)

WEIGHTS = ["model.weights.h5"] if IS_KERAS_3 else ["weights", "weights.h5"]
SAVED_MODEL = [] if IS_KERAS_3 else [pytest.param("model", marks=pytest.mark.slow)]
CONFIG = tiny_config(untie_r=False, clamp_len=5, recompute="block")
LAYERS = {
    RelativeBiases: {
        "num_heads": 3,
        "d_head": 5,
        "init_std": 0.1,
        "attention_init": "neighbors",
    },
    RelativePositionEncoding: {"clamp_len": 3},
    RelativeSegmentEncoding: {"num_heads": 3, "d_head": 5, "init_std": 0.1},
    TwoStreamAttentionMask: {},
    TwoStreamRelativeAttention: {
        "num_heads": 3,
        "d_head": 5,
        "dropatt": 0.2,
        "untie_r": False,
        "attention_type": "uni",
        "init_std": 0.1,
        "recompute": True,
        "attention_init": "neighbors",
    },
    ResidualNorm: {"dropout": 0.3},
    FeedForward: {"d_inner": 7, "activation": "relu", "dropout": 0.3, "init_std": 0.1},
    XLNetBlock: {
        "num_heads": 3,
        "d_head": 5,
        "d_inner": 7,
        "activation": "gelu_exact",
        "dropout": 0.3,
        "dropatt": 0.2,
        "untie_r": False,
        "attention_type": "uni",
        "init_std": 0.1,
        "recompute_attention": True,
        "activation_dropout": 0.1,
        "attention_init": "neighbors",
    },
    XLNetEncoder: {"config": CONFIG.as_dict(), "reuse_len": 3, "mem_len": 7},
    LMHead: {"vocab_size": 11, "embedding_rows": 13},
    XLNetPretrainer: {"config": CONFIG.as_dict(), "batch_size": 3},
}


@pytest.mark.parametrize("kind", LAYERS, ids=lambda kind: kind.__name__)
def test_configuration_round_trip(kind):
    settings = LAYERS[kind]
    parameters = set(inspect.signature(kind.__init__).parameters) - {"self", "kwargs"}
    assert set(settings) == parameters
    assert keras.utils.get_registered_name(kind) == f"xlnet>{kind.__name__}"
    layer = kind(**settings, name="a_name")
    config = layer.get_config()
    assert {name: config[name] for name in settings} == settings
    text = json.dumps(keras.saving.serialize_keras_object(layer))
    again = keras.saving.deserialize_keras_object(json.loads(text))
    assert type(again) is kind
    assert again.get_config() == config
    assert again.name == "a_name"


def test_a_block_of_an_older_file_has_its_attention_as_it_says():
    """Whose arguments of attention are apart."""
    block = XLNetBlock(3, 5, 7, dropatt=0.3, untie_r=False, recompute_attention=True)
    attention = {"num_heads": 3, "d_head": 5, "dropatt": 0.3, "untie_r": False, "recompute": True}
    older = {"num_heads": 3, "d_head": 5, "d_inner": 7, "name": block.name, "attention": attention}
    assert XLNetBlock.from_config(older).get_config() == block.get_config()


def assert_same_outputs(model, other):
    inputs = random_inputs(0, order="all", memory=MEMORY, layers=1)
    tf.nest.map_structure(np.testing.assert_array_equal, model(inputs), other(inputs))


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A model, and the folder where `ModelCheckpoint` left the best of its epochs, in each form."""
    folder = tmp_path_factory.mktemp("checkpoints")
    model = make_model(num_layers=1, is_random=False, dropout=0.1, layer_decay=0.8)
    best = {"monitor": "val_loss", "save_best_only": True}
    callbacks = [
        keras.callbacks.ModelCheckpoint(
            str(folder / name), save_weights_only=name != "model.keras", **best
        )
        for name in (*WEIGHTS, "model.keras")
    ]
    data = stacked(random_windows(0, context_length=0), random_windows(1, context_length=REUSE))
    model.run_eagerly = True
    history = model.fit(data, validation_data=data, epochs=2, callbacks=callbacks, verbose=0)
    losses = history.history["val_loss"]
    assert losses[1] < losses[0], "the last epoch should be the best"
    return model, folder


@pytest.mark.parametrize("name", WEIGHTS)
def test_model_checkpoint_of_weights(fitted, name):
    model, folder = fitted
    other = make_model(num_layers=1)
    other.load_weights(str(folder / name))
    assert_same_outputs(model, other)


@pytest.mark.parametrize("name", ["model.keras", *SAVED_MODEL])
def test_a_saved_model_is_loaded_with_its_optimizer(fitted, name):
    model, folder = fitted
    if name == "model":
        model.save(folder / name)
    loaded = keras.models.load_model(folder / name)
    assert isinstance(loaded, XLNetPretrainer)
    assert loaded.config.as_dict() == model.config.as_dict()
    assert_same_outputs(model, loaded)
    assert loaded.optimizer.get_config() == model.optimizer.get_config()
    # A SavedModel holds no state of an optimizer (docs/keras.md).
    assert int(loaded.optimizer.iterations) == (4 if name == "model.keras" else 0)
    for variable in loaded.trainable_variables:
        path = path_of(variable)
        decayed = "bias" not in path and "norm" not in path
        assert loaded.optimizer._use_weight_decay(variable) == decayed
    loaded.train_step(random_windows(0))  # A model that can be trained on.


def test_checkpoint_names_are_pinned(tmp_path):
    """Checkpoints that people have must stay readable: a renaming must be meant."""
    suffix, shapes = "/.ATTRIBUTES/VARIABLE_VALUE", []
    of_projects = rows("ADDED_VARIABLES")
    for number, changes in enumerate([{}, *(changes for changes, _ in of_projects)]):
        model = XLNetPretrainer(tiny_config(num_layers=1, **changes))
        path = tf.train.Checkpoint(model=model).save(str(tmp_path / f"checkpoint{number}"))
        shapes.append(
            {
                name.removesuffix(suffix).removeprefix("model/"): shape
                for name, shape in tf.train.list_variables(path)
                if name.startswith("model/") and "_metric/" not in name and "keras_api" not in name
            }
        )
    attention = "encoder/blocks/0/attention/"
    assert set(shapes[0]) == {
        "encoder/mask_embedding",
        "encoder/word_embedding/embeddings",
        *(f"{attention}{x}_kernel" for x in ("query", "key", "value", "position", "output")),
        *(f"{attention}biases/{x}_bias" for x in ("content", "position", "segment")),
        f"{attention}segment_embedding",
        *(f"encoder/blocks/0/attention_norm/{x}" for x in ("gamma", "beta")),
        *(f"encoder/blocks/0/feed_forward_norm/{x}" for x in ("gamma", "beta")),
        *(f"encoder/blocks/0/feed_forward/{x}_kernel" for x in ("inner", "outer")),
        *(f"encoder/blocks/0/feed_forward/{x}_bias" for x in ("inner", "outer")),
        "lm_head/bias",
        "memory",
    }
    for found, (_, added) in zip(shapes[1:], of_projects, strict=True):
        assert found == shapes[0] | added


# A process that has imported nothing of ours but the package, which loads no TensorFlow.
SCRIPT = """
import sys
import official.xlnet
assert "tensorflow" not in sys.modules and "tf_keras" not in sys.modules
import tensorflow as tf
{code}
"""


def run(code, **environment):
    """The lines that a new process writes to its standard output."""
    command = [sys.executable, "-c", SCRIPT.format(code=code)]
    environment = {**os.environ, **environment}
    result = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()


def test_every_registered_class_has_its_name():
    """What Keras' files may name is exactly what is registered."""
    registered = {}
    decorator = "register_keras_serializable(package='xlnet')"
    for path in sorted((ROOT / "official/xlnet").rglob("*.py")):
        source = path.read_text()
        if "register_keras_serializable" not in source:
            continue  # Parsing takes longer than searching.
        for node in ast.walk(ast.parse(source)):
            decorators = [ast.unparse(x) for x in getattr(node, "decorator_list", ())]
            if any(decorator in x for x in decorators):
                module = path.relative_to(ROOT / "official/xlnet").with_suffix("")
                registered[node.name] = ".".join(module.parts)
    assert registered == keras_names.CLASSES.modules


@pytest.mark.slow
@pytest.mark.parametrize(
    "ours, other, legacy", [("keras", "tf_keras", ""), ("tf_keras", "keras", "1")]
)
def test_with_the_other_keras_the_error_names_the_variable(ours, other, legacy):
    code = f"""
from official.xlnet import RelativePositionEncoding, XLNetBlock, XLNetClassifier, XLNetPretrainer
from official.xlnet.errors import ConfigError
import {other} as other

class Subclassed(other.Model):
    def __init__(self, part):
        super().__init__()
        self.part = part
        self.head = other.layers.Dense(1)
        self.compile("sgd", "mse")

    def call(self, inputs):
        outputs = self.part(inputs)
        return self.head(outputs["content"][:, -1] if isinstance(outputs, dict) else outputs)

class Callback(other.callbacks.Callback):
    pass

ids = tf.constant([[17, 42, 11], [11, 13, 12]])
model = XLNetPretrainer({tiny_config(num_layers=1).as_dict()!r})
classifier = XLNetClassifier(model.encoder, 1)
for wrong in (
    lambda: model.compile(other.optimizers.Adam()),
    lambda: classifier.compile(other.optimizers.Adam()),
    lambda: classifier.compile("adam", other.losses.sparse_categorical_crossentropy),
    lambda: classifier.compile("adam", "mse", [other.metrics.Accuracy()]),
    lambda: classifier.fit(ids, tf.zeros([2, 1]), callbacks=[Callback()]),
    lambda: model({{"token_ids": other.Input([{TOKENS}], dtype="int32")}}),
    lambda: model.encoder(other.Input([{TOKENS}], dtype="int32")),
    lambda: RelativePositionEncoding()(other.Input([{TOKENS}, 22])),
    lambda: Subclassed(model.encoder).fit(ids, tf.zeros([2, 1])),
    lambda: Subclassed(XLNetClassifier(model.encoder, 1))(ids),
    lambda: Subclassed(XLNetBlock(2, 11, 29))(tf.zeros([2, 3, 22])),
):
    try:
        wrong()
    except ConfigError as error:
        print(repr(error))
"""
    lines = run(code, TF_USE_LEGACY_KERAS=legacy)
    assert len(lines) == 11
    assert all(f"expected objects of {ours}, got {other}." in line for line in lines[:5])
    assert all(f"expected inputs of {ours}" in line for line in lines[5:8])
    assert all(f"got a call by a model or layer of {other}" in line for line in lines[8:])
    assert all("TF_USE_LEGACY_KERAS" in line for line in lines)


@pytest.mark.slow
@pytest.mark.parametrize(
    "before, legacy, expected",
    [
        ("", "", "keras"),
        ("", "0", "keras"),
        ("", "1", "tf_keras"),
        ("import tf_keras", "", "tf_keras"),
        ("import tf_keras", "0", "keras"),
        ("from official.xlnet import garden", "", "tf_keras"),
        (
            "from official.xlnet import garden",
            "0",
            "expected tf_keras for official.xlnet.projects.garden",
        ),
        ("importlib.util.find_spec = lambda name: None", "1", "or tf-keras to be installed"),
    ],
)
def test_the_keras_is_that_of_the_variable_or_of_an_earlier_import(before, legacy, expected):
    code = f"""
import importlib.util
try:
    {before or "pass"}
    from official.xlnet.modeling.ops.keras import keras
    print(keras.__name__)
except ValueError as error:
    print(error)
"""
    program, environment = (
        [sys.executable, "-c", code],
        {**os.environ, "TF_USE_LEGACY_KERAS": legacy},
    )
    done = subprocess.run(program, stdout=subprocess.PIPE, text=True, env=environment, check=True)
    found = done.stdout.strip()
    assert found == expected if expected.endswith("keras") else expected in found


def test_a_file_with_a_loss_that_cannot_be_read_says_how_to_load_it():
    loss = {"module": "keras.losses", "class_name": "Huber", "registered_name": None}
    config = {"optimizer": "sgd", "loss": {**loss, "config": {"wrong": 1}}}
    with pytest.raises(ConfigError, match="load it with compile=False"):
        make_model().compile_from_config(config)


def test_predict_of_windows_reads_them_as_evaluate_does():
    """Losses computed from what is returned are those of `evaluate`, memory included."""
    model = make_model(num_layers=1, num_predict=9)
    model.run_eagerly = True
    data = stacked(random_windows(0, context_length=0), random_windows(1, context_length=REUSE))
    predicted = model.predict(data, verbose=0)
    assert set(predicted) == {"content", "query", "logits", "labels", "target_mask"}
    assert predicted["logits"].shape == (8, 9, VOCAB)
    log_p = tf.nn.log_softmax(predicted["logits"]).numpy()
    losses = -np.take_along_axis(log_p, predicted["labels"][..., None], axis=-1)[..., 0]
    mask = predicted["target_mask"]
    assert 0 < mask.sum() < mask.size
    loss = model.evaluate(data, verbose=0)
    np.testing.assert_allclose((losses * mask).sum() / mask.sum(), loss, rtol=1e-5)
    assert not model.memory.states.numpy().any(), "the memory of training is another"
