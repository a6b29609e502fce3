"""The kind of device that a graph is built for.

A few operations have two forms with the same result: the fastest on a CPU, and one without what
costs on an accelerator (loops over rows, products in the place of sums, constants as large as an
activation). This is the one place that chooses between them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import tensorflow as tf

_chosen: bool | None = None


def has_accelerator() -> bool:
    """Whether graphs are built for a GPU or TPU: where there is one, or inside `built_for`."""
    if _chosen is not None:
        return _chosen
    return any(device.device_type != "CPU" for device in tf.config.list_logical_devices())


@contextlib.contextmanager
def built_for(accelerator: bool) -> Iterator[None]:
    """What is traced inside takes the forms of an accelerator, or those of a CPU.

    For compiling without the device at hand, and for tests.

    Args:
      accelerator: whether to take the forms of an accelerator.

    Example:
      >>> with built_for(accelerator=True):
      ...     has_accelerator()
      True
    """
    global _chosen
    before, _chosen = _chosen, accelerator
    try:
        yield
    finally:
        _chosen = before
