"""Configurations, models and checkpoints survive being written and read."""

import inspect
import json

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

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
from official.xlnet.training.optimization import create_optimizer
from tests.helpers.tiny import (
    MEMORY,
    random_inputs,
    random_windows,
    randomize,
    tiny_config,
)

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
        "attention": {"num_heads": 3, "d_head": 5, "dropatt": 0.3},
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
    assert tf_keras.utils.get_registered_name(kind) == f"xlnet>{kind.__name__}"
    layer = kind(**settings, name="a_name")
    config = layer.get_config()
    assert {name: config[name] for name in settings} == settings
    text = json.dumps(tf_keras.saving.serialize_keras_object(layer))
    again = tf_keras.saving.deserialize_keras_object(json.loads(text))
    assert type(again) is kind
    assert again.get_config() == config
    assert again.name == "a_name"


def make_model(seed):
    tf_keras.utils.set_random_seed(seed)
    model = XLNetPretrainer(tiny_config(dropout=0.1, dropatt=0.1, layer_decay=0.8))
    randomize(model.trainable_variables, seed)
    optimizer = create_optimizer(model.config.training, model.config.model.num_layers)
    optimizer.build(model.trainable_variables)
    model.compile(optimizer)
    return model


def assert_same_outputs(model, other):
    inputs = random_inputs(0, order="all", memory=MEMORY)
    ours, theirs = model(inputs), other(inputs)
    assert set(ours) == {"content", "query", "memory", "logits"}
    for name, value in ours.items():
        np.testing.assert_array_equal(value, theirs[name])


def test_keras_file(tmp_path):
    model = make_model(1)
    model.train_step(random_windows(0))
    path = str(tmp_path / "model.keras")
    model.save(path)
    loaded = tf_keras.models.load_model(path)
    assert isinstance(loaded, XLNetPretrainer)
    assert loaded.config.as_dict() == model.config.as_dict()
    assert_same_outputs(model, loaded)
    assert loaded.optimizer.get_config() == model.optimizer.get_config()
    assert int(loaded.optimizer.iterations) == 1
    for variable in loaded.trainable_variables:
        decayed = "bias" not in variable.name and "norm" not in variable.name
        assert loaded.optimizer._use_weight_decay(variable) == decayed


@pytest.mark.parametrize("name", ["weights.h5", "weights"])
def test_weights_file(tmp_path, name):
    model, other = make_model(1), make_model(2)
    model.save_weights(str(tmp_path / name))
    other.load_weights(str(tmp_path / name))
    assert_same_outputs(model, other)


def test_checkpoint_continues_exactly(tmp_path):
    """Weights, moments, step count and memory: the next step is that which would have been."""
    model, other = make_model(1), make_model(2)
    for number in range(2):
        model.train_step(random_windows(number))
    saved = tf.train.Checkpoint(model=model, optimizer=model.optimizer)
    path = saved.save(str(tmp_path / "checkpoint"))
    restored = tf.train.Checkpoint(model=other, optimizer=other.optimizer)
    restored.restore(path).assert_consumed()
    np.testing.assert_array_equal(other.memory.states, model.memory.states)
    assert model.memory.states.numpy().any()
    batch = random_windows(2, context_length=MEMORY)
    assert float(model.train_step(batch)["loss"]) != 0
    other.train_step(batch)
    for ours, theirs in zip(
        [*model.variables, *model.optimizer.variables, model.memory.states],
        [*other.variables, *other.optimizer.variables, other.memory.states],
        strict=True,
    ):
        if "loss" not in ours.name and ours.name not in ("total:0", "count:0"):
            np.testing.assert_array_equal(ours, theirs, err_msg=ours.name)


def test_checkpoint_names_are_pinned(tmp_path):
    """Checkpoints that people have must stay readable: a renaming must be meant."""
    model = XLNetPretrainer(tiny_config(num_layers=1))
    path = tf.train.Checkpoint(model=model).save(str(tmp_path / "checkpoint"))
    suffix = "/.ATTRIBUTES/VARIABLE_VALUE"
    names = {
        name.removesuffix(suffix).removeprefix("model/")
        for name, _ in tf.train.list_variables(path)
        if name.startswith("model/") and "_metric/" not in name and "keras_api" not in name
    }
    attention = "encoder/blocks/0/attention/"
    assert names == {
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


def test_the_place_of_next_sentence_in_checkpoints_is_pinned(tmp_path):
    """Runs of version 0.1 with this objective resume, so nothing else may be expected of them."""
    names = []
    for number, changes in enumerate(({}, {"objective.next_sentence": True})):
        model = XLNetPretrainer(tiny_config(num_layers=1, **changes))
        path = tf.train.Checkpoint(model=model).save(str(tmp_path / f"checkpoint{number}"))
        names.append(dict(tf.train.list_variables(path)))
    added = {name: shape for name, shape in names[1].items() if name not in names[0]}
    assert added == {
        "model/next_sentence/kernel/.ATTRIBUTES/VARIABLE_VALUE": [22],
        "model/next_sentence/bias/.ATTRIBUTES/VARIABLE_VALUE": [],
    }
