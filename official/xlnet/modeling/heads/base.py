"""What every head has in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import tensorflow as tf
import tf_keras

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.registry import Registry
from official.xlnet.errors import ConfigError
from official.xlnet.modeling.ops.initializers import normal


class Head(tf_keras.layers.Layer):
    """A layer from the encoder's vectors to a task's outputs, and the loss of those.

    A batch has U units of S sequences of T tokens: S is 1 for a single text, the number of
    options for multiple choice.

    `call(content_USTD, inputs, seed)` returns a dictionary of float32 tensors that begin with
    [U]; `inputs` are those of `XLNetTaskModel`, `seed` int32 [2] switches dropout on.

    Attributes:
      reads_summary: whether a sequence's vectors are read through a `SequenceSummary` alone.
    """

    reads_summary = False

    def __init__(self, config: XLNetConfig, **kwargs):
        super().__init__(**kwargs)
        self.config = config

    def loss(self, outputs: dict[str, tf.Tensor], labels: dict[str, tf.Tensor]) -> tf.Tensor:
        """Sum of the losses of every unit's items, float32 [U]."""
        raise NotImplementedError

    def num_items(self, labels: dict[str, tf.Tensor]) -> tf.Tensor:
        """What the loss of a batch is a mean over: items of every unit, float32 [U]."""
        return tf.ones_like(labels["weight"])

    def dense(self, units: int, name: str, **kwargs) -> tf_keras.layers.Dense:
        """A dense layer in float32 with the model's initializer."""
        kernel = normal(self.config.model.init_std)
        return tf_keras.layers.Dense(
            units, kernel_initializer=kernel, name=name, dtype="float32", **kwargs
        )

    def build_parts(self, **widths: int) -> None:
        """Builds sub-layers, given by attribute, for inputs of these widths."""
        for name, width in widths.items():
            with tf.name_scope(name):
                getattr(self, name).build([None, width])

    def get_config(self):
        return {**super().get_config(), "config": self.config.as_dict()}


CreateHead = TypeVar("CreateHead", bound=Callable[..., Head])
HEADS: Registry[Callable[..., Head]] = Registry("task.name")


def register_head(name: str) -> Callable[[CreateHead], CreateHead]:
    """Decorator that makes a `Head`, or a function that returns one, the head of a task.

    It is called as `head(config, name="head")`.

    Args:
      name: the `task.name` whose outputs it computes.

    Raises:
      ConfigError: the task has a head already.

    Example:
      >>> @register_head("stars")
      ... class StarsHead(SummaryHead):
      ...     def loss(self, outputs, labels): ...
    """
    return HEADS.register(name)


def num_classes(config: XLNetConfig) -> int:
    """Number of classes C, from `task.labels`.

    Raises:
      ConfigError: there are none.
    """
    if not config.task.labels:
        raise ConfigError(f"task.labels: expected the classes of {config.task.name}, got none")
    return len(config.task.labels)
