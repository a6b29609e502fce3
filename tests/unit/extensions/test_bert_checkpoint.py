"""BERT checkpoints, written by the Model Garden's own models, in all their forms."""

import json

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from official.nlp.modeling import models, networks

from official.xlnet.configs.registry import NETWORKS
from official.xlnet.errors import DataError
from official.xlnet.garden import bert_config, load_bert, restore_bert
from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
from tests.helpers.tiny import randomize

CONFIG = {
    "attention_probs_dropout_prob": 0.1,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "hidden_size": 22,
    "initializer_range": 0.02,
    "intermediate_size": 29,
    "max_position_embeddings": 31,
    "num_attention_heads": 2,
    "num_hidden_layers": 3,
    "type_vocab_size": 2,
    "vocab_size": 53,
}
SIZES = {
    "vocab_size": 53,
    "hidden_size": 22,
    "num_layers": 3,
    "num_attention_heads": 2,
    "max_sequence_length": 31,
    "type_vocab_size": 2,
}


def gelu(x):
    return tf_keras.activations.gelu(x, approximate=True)


def pretrainer(form=networks.BertEncoderV2):
    """The garden's pre-training model with random weights."""
    inner = {"inner_dim": 29}
    if form is networks.BertEncoder:
        inner["dict_outputs"] = True
    encoder = form(**SIZES, **inner)
    model = models.BertPretrainerV2(encoder, mlm_activation=gelu)
    model(model.inputs)
    randomize(model.variables, seed=1)
    return model


def inputs():
    rng = np.random.default_rng(0)
    mask = (np.arange(13) < np.array([[13], [5], [9]])).astype(np.int32)
    return {
        "input_word_ids": rng.integers(0, 53, [3, 13]).astype(np.int32),
        "input_mask": mask,
        "input_type_ids": np.sort(rng.integers(0, 2, [3, 13])).astype(np.int32),
        "masked_lm_positions": np.array([[1, 4], [3, 0], [8, 8]], np.int32),
    }


def ours(given):
    return {
        "token_ids": given["input_word_ids"],
        "segment_ids": given["input_type_ids"],
        "is_padding": given["input_mask"] == 0,
    }


def write(folder, **parts):
    (folder / "bert_config.json").write_text(json.dumps(CONFIG))
    return tf.train.Checkpoint(**parts).save(str(folder / "bert_model.ckpt"))


@pytest.mark.slow
@pytest.mark.parametrize("form", [networks.BertEncoderV2, networks.BertEncoder])
@pytest.mark.parametrize("place", ["encoder", "items", "model"])
def test_outputs_of_a_published_folder(tmp_path, form, place):
    theirs = pretrainer(form)
    parts = {
        "encoder": {"encoder": theirs.encoder_network},  # As the garden's converter.
        "items": theirs.checkpoint_items,
        "model": {"model": theirs},  # As a training run.
    }
    write(tmp_path, **parts[place])
    given = inputs()
    expected = theirs(given)["sequence_output"]
    content = load_bert(str(tmp_path))(ours(given))["content"]
    is_real = given["input_mask"] == 1
    np.testing.assert_allclose(content[is_real], expected[is_real], atol=1e-6)


@pytest.mark.parametrize("place", ["items", "model"])
def test_logits_of_a_pretrainer(tmp_path, place):
    theirs = pretrainer()
    path = write(tmp_path, **(theirs.checkpoint_items if place == "items" else {"model": theirs}))
    model = XLNetPretrainer(bert_config(str(tmp_path / "bert_config.json")))
    restore_bert(path, model.encoder, model.lm_head)
    given = inputs()
    logits = model({**ours(given), "content_positions": given["masked_lm_positions"]})["logits"]
    np.testing.assert_allclose(logits, theirs(given)["mlm_logits"], atol=1e-5)


def test_what_does_not_fit(tmp_path):
    theirs = pretrainer()
    write(tmp_path, encoder=theirs.encoder_network)
    config = bert_config(str(tmp_path / "bert_config.json"))
    path = str(tmp_path / "bert_model.ckpt-1")
    with pytest.raises(DataError, match="expected variables below encoder and masked_lm"):
        restore_bert(path, XLNetPretrainer(config).encoder, XLNetPretrainer(config).lm_head)
    config.model.num_layers = 5
    encoder = NETWORKS[config.model.network](config)
    encoder.build()
    with pytest.raises(DataError, match="cannot be used"):
        restore_bert(path, encoder)
    (tmp_path / "bert_config.json").write_text(json.dumps({**CONFIG, "hidden_act": "swish"}))
    with pytest.raises(DataError, match="hidden_act: expected one of gelu, relu, got 'swish'"):
        load_bert(str(tmp_path))
    (tmp_path / "bert_config.json").write_text(json.dumps({"vocab_size": 53}))
    with pytest.raises(DataError, match="expected the keys of a BERT"):
        load_bert(str(tmp_path))
