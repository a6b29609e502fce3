"""Task heads: layers that map the encoder's hidden states to task outputs, with their losses."""

from __future__ import annotations

from official.xlnet.configs.registry import HEADS
from official.xlnet.configs.sections import HeadSections
from official.xlnet.modeling.heads.base import Head, register_head

__all__ = ["Head", "create_head", "register_head"]


def create_head(config: HeadSections, dtype=None) -> Head:
    """Creates the head of the task that `config.task` names.

    Args:
      config: sections of the experiment; `task.labels` must be set for classification.
      dtype: precision policy of the head; default: Keras' global policy.

    Returns:
      The head, named "head".

    Raises:
      ConfigError: no head is registered under `task.name`, or the labels it needs are missing.
    """
    return HEADS[config.task.name](config, name="head", dtype=dtype)
