"""Our format: model directories, read and written as variables by name."""

from __future__ import annotations

import contextlib
import os
import re
import weakref
from collections.abc import Iterable
from typing import Any

import numpy as np
import tensorflow as tf

from official.xlnet.checkpoints.checkpoint_files import newest_checkpoint, reading_checkpoint
from official.xlnet.checkpoints.plain_folder import plain_folder
from official.xlnet.checkpoints.source import Source, finite_floats
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.registry import CHECKPOINT_FORMATS
from official.xlnet.errors import DataError

_PREFIX, _SUFFIX = "model/", "/.ATTRIBUTES/VARIABLE_VALUE"
MEMORY = f"model/memory{_SUFFIX}"  # Key of the recurrent memory of a run.
_OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"
# Keys of the state of a run beside the weights: optimizer, metrics, recurrent memory.
_OF_TRAINING = re.compile(
    r"^optimizer/|\.OPTIMIZER_SLOT/|^(model/)?[a-z_]+_metric/|^model/memory/\.ATTR|^save_counter/"
)


class CheckpointFile:
    """Reader of the variables in a TensorFlow checkpoint by name.

    Args:
      prefix: path of the checkpoint without `.index`.

    Attributes:
      shapes: {name: shape} of all variables.

    Raises:
      DataError: the index cannot be read.
    """

    def __init__(self, prefix: str):
        self._prefix = prefix
        folder, name = os.path.split(prefix)
        with reading_checkpoint(prefix), contextlib.ExitStack() as stack:
            plain = stack.enter_context(plain_folder(folder))
            self._reader = tf.train.load_checkpoint(os.path.join(plain, name))
            weakref.finalize(self, stack.pop_all().close)  # Values are read later.
            shapes = self._reader.get_variable_to_shape_map()
        self.shapes = {name: tuple(shape) for name, shape in sorted(shapes.items())}

    def read(self, name: str) -> np.ndarray:
        """Returns the value of a variable as float32; verifies its checksum.

        Raises:
          DataError: its data file is missing or damaged, or it is not of finite numbers.
        """
        with reading_checkpoint(self._prefix):
            value = self._reader.get_tensor(name)
        return finite_floats(value, f"{self._prefix}: {name}")


@CHECKPOINT_FORMATS.register("xlnet")
def open_xlnet(path: str) -> Source:
    """Opens a model directory.

    Variables of the model are named by their attribute path (`encoder/mask_embedding`), all others
    by their key in the checkpoint. The state of a training run is not read.

    Args:
      path: the model directory.

    Raises:
      ConfigError: the configuration is missing or invalid.
      DataError: the checkpoint is missing or damaged.
    """
    config, saved = XLNetConfig.load(path), newest_checkpoint(path)
    if saved is None:
        raise DataError(f"no checkpoint in {path!r}: expected a model directory")
    checkpoint = CheckpointFile(saved.prefix)
    keys = {
        key.removeprefix(_PREFIX).removesuffix(_SUFFIX): key
        for key in checkpoint.shapes
        if key != _OBJECT_GRAPH and not _OF_TRAINING.search(key)
    }
    shapes = {name: checkpoint.shapes[key] for name, key in keys.items()}
    return Source("xlnet", path, config, shapes, lambda name: checkpoint.read(keys[name]))


def write_variables(folder: str, variables: Iterable[tuple[str, np.ndarray]]) -> None:
    """Writes the checkpoint of a model directory.

    Args:
      folder: an existing directory.
      variables: name and value of each variable of the model.
    """
    tree: dict[str, Any] = {}
    for name, value in variables:
        *parents, last = name.split("/")
        branch = tree
        for parent in parents:
            branch = branch.setdefault(parent, {})
        branch[last] = tf.Variable(value)
    tf.train.Checkpoint(model=_trackable(tree)).save(os.path.join(folder, "ckpt"))


def _trackable(tree: dict[str, Any]) -> tf.train.Checkpoint:
    """Nested trackable objects with the keys as attributes, which determine the checkpoint keys."""
    attributes = dict[str, Any]()
    for name, value in tree.items():
        attributes[name] = _trackable(value) if isinstance(value, dict) else value
    return tf.train.Checkpoint(**attributes)
