"""Format of the TF1 release: `xlnet_config.json`, `spiece.model` and `xlnet_model.ckpt.*`.

Checkpoints are read and written directly, without building a TF1 graph.
"""

from __future__ import annotations

import os
import re
from typing import Any

import tensorflow as tf

from official.xlnet.checkpoints.checkpoint_files import latest_checkpoint
from official.xlnet.checkpoints.convert.folders import (
    OBJECTIVE_KEY,
    check_head_size,
    num_labels,
    read_settings,
    settings_under,
)
from official.xlnet.checkpoints.convert.hf_tokenizer import without_tokens
from official.xlnet.checkpoints.convert.variable_map import Weights, variables_of
from official.xlnet.checkpoints.source import CONFIG_FILES, Source
from official.xlnet.checkpoints.xlnet_format import CheckpointFile
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.registry import CHECKPOINT_FORMATS, HEAD_FORMATS
from official.xlnet.errors import require_config, require_data
from official.xlnet.files.atomic import write_bytes
from official.xlnet.files.json_files import read_json, write_json
from official.xlnet.tokenization.special_tokens import VOCAB_FILE
from official.xlnet.tokenization.vocabulary_file import read_vocabulary

CONFIG_FILE = CONFIG_FILES["tf1"]
CHECKPOINT = "xlnet_model.ckpt"
# {key of the file: our key}.
_SETTINGS = {
    "d_inner": "model.d_inner",
    "d_model": "model.d_model",
    "ff_activation": "model.activation",
    "n_head": "model.num_heads",
    "n_layer": "model.num_layers",
    "n_token": "model.vocab_size",
    "untie_r": "model.untie_r",
}
_ACTIVATIONS = ("gelu", "relu")  # Same names and functions as in our configuration.


@CHECKPOINT_FORMATS.register("tf1")
def open_tf1(path: str) -> Source:
    """Opens a pre-trained or fine-tuned model in TF1 format.

    Args:
      path: directory of the model.

    Raises:
      DataError: a file is missing or damaged.
      ConfigError: the configuration is invalid.
    """
    checkpoint = CheckpointFile(_find_checkpoint(path))
    file = os.path.join(path, CONFIG_FILE)
    config, tree = XLNetConfig(), read_json(file, dict[str, Any])
    read_settings(config, _SETTINGS, tree, file, required=True)
    read_settings(config, {OBJECTIVE_KEY: "objective.kind"}, tree, file)
    check_head_size(config.model, tree, file)
    name, scope = _head_of(checkpoint.shapes)
    config.task = task = config.task.updated({"name": name}, "")
    if scope:
        task.scope = scope
    source = Source("tf1", path, config, checkpoint.shapes, checkpoint.read)
    logits = HEAD_FORMATS[task.name].logits().tf1 if task.name else None
    if logits and "C" in logits.shape:
        num_classes = num_labels(source, logits.name.format(scope=scope), logits.shape)
        task.labels = tuple(map(str, range(num_classes)))
    return source


def write_tf1(folder: str, weights: Weights, vocab_file: str) -> None:
    """Writes a model in the format of the TF1 release.

    Args:
      folder: an existing empty directory.
      weights: the weights to write.
      vocab_file: SentencePiece model to copy.

    Raises:
      ConfigError: the format cannot represent the configuration.
    """
    model = weights.config.model
    require_config(
        model.activation in _ACTIVATIONS,
        "model.activation",
        f"one of {', '.join(_ACTIVATIONS)}, which the TF1 release supports",
        f"{model.activation!r}; if the model was trained with the tanh approximation (as were "
        "the published models, despite `gelu` in HF's config.json), pass "
        "--set=model.activation=gelu",
    )
    write_bytes(os.path.join(folder, VOCAB_FILE), without_tokens(read_vocabulary(vocab_file)))
    tree = {
        **settings_under(_SETTINGS, weights.config),
        "d_head": model.d_head,
        "n_token": model.num_embeddings,
    }
    objective = weights.config.objective.kind
    if objective != "permutation":
        tree[OBJECTIVE_KEY] = objective
    write_json(os.path.join(folder, CONFIG_FILE), tree, indent=2)
    names, tensors = [], []
    for name, value in variables_of("tf1", weights):
        names.append(name)
        tensors.append(tf.constant(value))
    tf.raw_ops.SaveV2(
        prefix=os.path.join(folder, CHECKPOINT),
        tensor_names=names,
        shape_and_slices=[""] * len(names),
        tensors=tensors,
    )


def _head_of(shapes) -> tuple[str, str]:
    """`task.name` and `task.scope` of the model's head, e.g. ("classification", "mnli")."""
    heads = []
    for task in HEAD_FORMATS.names():
        if logits := HEAD_FORMATS[task].logits().tf1:
            pattern = re.escape(logits.name).replace(re.escape("{scope}"), "(.+)")
            matches = [re.fullmatch(pattern, name) for name in shapes]
            heads += [(task, "".join(match.groups())) for match in matches if match]
    return heads[0] if len(heads) == 1 else ("", "")


def _find_checkpoint(path: str) -> str:
    """Path prefix of the checkpoint: `xlnet_model.ckpt`, the latest, or the only one."""
    prefixes = [
        os.path.join(path, name.removesuffix(".index"))
        for name in sorted(os.listdir(path))
        if name.endswith(".index")
    ]
    release, latest = os.path.join(path, CHECKPOINT), latest_checkpoint(path)
    known = [prefix for prefix in (release, latest) if prefix in prefixes] or prefixes
    require_data(
        len(prefixes) == 1 or known is not prefixes,
        path,
        f"{CHECKPOINT}.index",
        f"{len(prefixes)} other indices",
    )
    return known[0]
