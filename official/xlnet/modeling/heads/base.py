"""Base class of task heads."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import tensorflow as tf

from official.xlnet.configs.registry import HEADS
from official.xlnet.configs.sections import HeadSections
from official.xlnet.errors import require_config
from official.xlnet.modeling.ops.initializers import normal
from official.xlnet.modeling.ops.keras import Dense, Layer, keras

if TYPE_CHECKING:
    from official.xlnet.modeling.heads.label_rule import LabelRule

MASKED = -1e30  # Score of masked elements, in a softmax or a maximum.


class Head(Layer):
    """Base class of task heads: a layer from hidden states to task outputs, and its loss.

    A batch has U units of S sequences of T tokens. S is 1 for a single text and the number of
    options for multiple choice.

    Args:
      config: sections of the experiment.

    Call arguments:
      content_USTD: hidden states of the encoder's content stream, float [U, S, T, D].
      inputs: inputs of `XLNetTaskModel`, among them `is_padding` bool [U, S, T].
      seed: dropout seed, int32 [2]. Dropout is applied only if it is given.

    Returns:
      A dictionary of float32 tensors with first axis U.

    Attributes:
      reads_summary: whether the head uses hidden states only through a `SequenceSummary`.
    """

    reads_summary = False

    def __init__(self, config: HeadSections, **kwargs):
        super().__init__(**kwargs)
        self.config = HeadSections(config.model, config.task)

    def loss(self, outputs: dict[str, tf.Tensor], labels: dict[str, tf.Tensor]) -> tf.Tensor:
        """Computes the loss of each unit, summed over its items.

        Args:
          outputs: outputs of `call`.
          labels: labels of the batch.

        Returns:
          float32 [U].
        """
        raise NotImplementedError(f"{type(self).__name__} has no loss")

    def num_items(self, labels: dict[str, tf.Tensor]) -> tf.Tensor:
        """Returns the number of loss items of each unit, float32 [U]; 1 unless overridden.

        The loss of a batch is the mean over all items.

        Args:
          labels: labels of the batch.
        """
        return tf.ones_like(labels["weight"])

    def label_rule(self) -> LabelRule | None:
        """Returns which values of `label` the loss takes, for `fit` of Keras; None: any.

        Without a rule, a missing label, such as -1 or NaN, may be trained for. A subclass of a head
        with labels of another kind overrides it, as it does `loss`.
        """
        return None

    def dense(self, units: int, name: str, **kwargs) -> keras.layers.Dense:
        """Creates a dense layer in float32 with the model's weight initialization.

        Args:
          units: output width.
          name: name of the layer.
          **kwargs: further arguments of `keras.layers.Dense`.
        """
        kernel = normal(self.config.model.init_std)
        return Dense(units, kernel_initializer=kernel, name=name, dtype="float32", **kwargs)

    def build_parts(self, **widths: int) -> None:
        """Builds sub-layers.

        Args:
          **widths: input width of each sub-layer, by attribute name.
        """
        for name, width in widths.items():
            with tf.name_scope(name):
                getattr(self, name).build([None, width])


CreateHead = TypeVar("CreateHead", bound=Callable[..., Head])


def register_head(name: str) -> Callable[[CreateHead], CreateHead]:
    """Decorator that registers a `Head`, or a function that returns one, as the head of a task.

    It is called as `head(config, name="head", dtype=…)`, with the precision policy of the model.

    Args:
      name: value of `task.name`.

    Raises:
      ConfigError: a head is already registered for the task.

    Example:
      >>> @register_head("stars")
      ... class StarsHead(SummaryHead):
      ...     def loss(self, outputs, labels): ...
    """
    return HEADS.register(name)


def num_classes(config: HeadSections) -> int:
    """Returns the number of classes, C, from `task.labels`.

    Raises:
      ConfigError: `task.labels` is empty.
    """
    require_config(
        bool(config.task.labels), "task.labels", f"the classes of {config.task.name}", "none"
    )
    return len(config.task.labels)
