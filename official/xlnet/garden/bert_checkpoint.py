"""BERT checkpoints of the Model Garden, read into the network `bert`.

A published folder holds `bert_config.json` and a checkpoint with the variables of
`official.nlp.modeling.networks.BertEncoder` or `BertEncoderV2` below `encoder/`; a training run of
`tfm.nlp` writes them below `model/encoder_network/`.
"""

from __future__ import annotations

import os
from typing import Any

import tensorflow as tf

from official.xlnet.checkpoints.checkpoint_files import reading_checkpoint, variable_names
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.registry import NETWORKS
from official.xlnet.errors import DataError
from official.xlnet.files.json_files import read_json
from official.xlnet.modeling.layers.lm_head import LMHead
from official.xlnet.modeling.networks import Encoder

CONFIG_FILE = "bert_config.json"

# {key of bert_config.json: key of `model`}
_KEYS = {
    "vocab_size": "vocab_size",
    "num_hidden_layers": "num_layers",
    "hidden_size": "d_model",
    "num_attention_heads": "num_heads",
    "intermediate_size": "d_inner",
    "hidden_dropout_prob": "dropout",
    "attention_probs_dropout_prob": "dropatt",
    "max_position_embeddings": "max_positions",
    "type_vocab_size": "num_segments",
    "initializer_range": "init_std",
}
_ACTIVATIONS = {"gelu": "gelu", "relu": "relu"}  # The garden's "gelu" is the tanh form.

# Where a checkpoint keeps the encoder, and the masked-LM head beside it.
_PLACES = (
    ("model/encoder_network", "model/masked_lm"),
    ("model/encoder", "model/masked_lm"),
    ("encoder_network", "masked_lm"),
    ("encoder", "masked_lm"),
)


def load_bert(folder: str) -> Encoder:
    """Loads a BERT encoder that the Model Garden published.

    The folder's WordPiece vocabulary is not read: token ids come from a tokenizer of its own, such
    as `tfm.nlp.layers.BertTokenizer`, in BERT's form `[CLS] A [SEP] B [SEP]`.

    Args:
      folder: a folder with `bert_config.json` and a checkpoint, the latest one if there are more.

    Returns:
      The built encoder.

    Raises:
      DataError: a file is missing or damaged, or is not that of a BERT.

    Example:
      >>> encoder = load_bert("uncased_L-12_H-768_A-12")
      >>> encoder({"token_ids": ids, "is_padding": ids == 0})["content"]
    """
    config = bert_config(os.path.join(folder, CONFIG_FILE))
    encoder = NETWORKS[config.model.network](config)
    encoder.build()
    indexes = sorted(name for name in os.listdir(folder) if name.endswith(".index"))
    if not indexes:
        raise DataError(f"{folder!r}: expected a checkpoint beside {CONFIG_FILE}, got none")
    latest = max(indexes, key=lambda name: os.path.getmtime(os.path.join(folder, name)))
    restore_bert(os.path.join(folder, latest.removesuffix(".index")), encoder)
    return encoder


def bert_config(path: str) -> XLNetConfig:
    """Converts a `bert_config.json` to the configuration of the same network.

    Raises:
      DataError: the file is missing, damaged or lacks a key.
    """
    tree = read_json(path, dict[str, Any])
    missing = sorted(key for key in [*_KEYS, "hidden_act"] if key not in tree)
    if missing:
        raise DataError(f"{path}: expected the keys of a BERT, got none of {', '.join(missing)}")
    if tree["hidden_act"] not in _ACTIVATIONS:
        raise DataError(
            f"{path}: hidden_act: expected one of {', '.join(_ACTIVATIONS)}, "
            f"got {tree['hidden_act']!r}"
        )
    model = {ours: tree[theirs] for theirs, ours in _KEYS.items()}
    model |= {"network": "bert", "mem_len": 0, "activation": _ACTIVATIONS[tree["hidden_act"]]}
    data = {"bidirectional": False, "seq_len": model["max_positions"], "reuse_len": 0}
    data["num_predict"] = round(0.15 * model["max_positions"])
    config = XLNetConfig.from_dict(
        {"model": model, "data": data, "objective": {"kind": "denoising"}}, path
    )
    config.check()
    return config


def restore_bert(checkpoint: str, encoder: Encoder, lm_head: LMHead | None = None) -> None:
    """Reads the weights of a BERT checkpoint of the Model Garden.

    Args:
      checkpoint: path prefix of the checkpoint, as `tf.train.latest_checkpoint` returns it.
      encoder: the built encoder to fill.
      lm_head: the built head to fill, for a checkpoint of a `BertPretrainerV2`.

    Raises:
      DataError: the checkpoint is damaged, or is not that of the same network.
    """
    names = variable_names(checkpoint)
    parts = {0: encoder} if lm_head is None else {0: encoder, 1: lm_head}
    for places in _PLACES:
        if all(any(name.startswith(places[i] + "/") for name in names) for i in parts):
            break
    else:
        expected = " and ".join(dict.fromkeys(place[i] for place in _PLACES[-1:] for i in parts))
        raise DataError(f"{checkpoint}: expected variables below {expected}, got none")
    root = tf.train.Checkpoint()
    for i, part in parts.items():
        *parents, last = places[i].split("/")
        node = root
        for parent in parents:
            if not hasattr(node, parent):
                setattr(node, parent, tf.train.Checkpoint())
            node = getattr(node, parent)
        setattr(node, last, part)
    with reading_checkpoint(checkpoint) as plain:
        root.restore(plain).expect_partial().assert_existing_objects_matched()
