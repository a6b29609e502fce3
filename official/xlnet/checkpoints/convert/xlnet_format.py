"""Our model directories, seen as variables by name."""

from __future__ import annotations

import os
import shutil
from typing import Any

import numpy as np
import tensorflow as tf

from official.xlnet.checkpoints.checkpoint_files import newest_checkpoint
from official.xlnet.checkpoints.convert.tf1_format import CheckpointFile
from official.xlnet.checkpoints.convert.variable_map import Weights, variables_of
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.errors import DataError
from official.xlnet.tokenization.special_tokens import VOCAB_FILE

_PREFIX, _SUFFIX = "model/", "/.ATTRIBUTES/VARIABLE_VALUE"
_OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"


class XLNetSource:
    """A model directory; see `names.Source`.

    Variables of the model go by their path in it (`encoder/mask_embedding`), all others, such
    as the optimizer's, by their key in the checkpoint.
    """

    form = "xlnet"

    def __init__(self, path: str):
        self.path = path
        self.vocab_file = os.path.join(path, VOCAB_FILE)
        self.config = XLNetConfig.load(path)
        saved = newest_checkpoint(path)
        if saved is None:
            raise DataError(f"no checkpoint in {path!r}: expected a model directory")
        self._checkpoint = CheckpointFile(saved.prefix)
        self._keys = {
            key.removeprefix(_PREFIX).removesuffix(_SUFFIX): key
            for key in self._checkpoint.shapes
            if key != _OBJECT_GRAPH
        }
        self.shapes = {name: self._checkpoint.shapes[key] for name, key in self._keys.items()}

    def read(self, name: str) -> np.ndarray:
        return self._checkpoint.read(self._keys[name])


def write_xlnet(folder: str, weights: Weights, vocab_file: str) -> None:
    """Writes a model directory."""
    tree: dict[str, Any] = {}
    for name, value in variables_of("xlnet", weights):
        *parents, last = name.split("/")
        branch = tree
        for parent in parents:
            branch = branch.setdefault(parent, {})
        branch[last] = tf.Variable(value)
    tf.train.Checkpoint(model=_trackable(tree)).save(os.path.join(folder, "ckpt"))
    shutil.copyfile(vocab_file, os.path.join(folder, VOCAB_FILE))
    weights.config.save(folder)


def _trackable(tree: dict[str, Any]) -> tf.train.Checkpoint:
    """Objects whose attributes are the keys, so that a checkpoint calls the variables the same."""
    return tf.train.Checkpoint(
        **{
            name: _trackable(value) if isinstance(value, dict) else value
            for name, value in tree.items()
        }
    )
