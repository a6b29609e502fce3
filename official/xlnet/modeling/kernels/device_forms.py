"""The kind of device that a graph is built for.

A few operations have several forms with the same result: the fastest on a CPU, and those without
what costs on an accelerator (loops over rows, products in the place of sums, constants as large as
an activation) or on a TPU (shifts). This is the one place that chooses between them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import tensorflow as tf

DEVICES = ("TPU", "GPU", "CPU")  # Where there are several, the first of these counts.
_chosen: str | None = None


def device() -> str:
    """The kind of device that graphs are built for, one of `DEVICES`."""
    if _chosen is not None:
        return _chosen
    device_types = {logical.device_type for logical in tf.config.list_logical_devices()}
    return next(device_type for device_type in DEVICES if device_type in device_types)


def has_accelerator() -> bool:
    """Whether graphs are built for a GPU or TPU: where there is one, or inside `built_for`."""
    return device() != "CPU"


@contextlib.contextmanager
def built_for(kind: str) -> Iterator[None]:
    """Context manager: functions traced inside take the forms of a kind of device.

    For compiling without the device at hand, and for tests.

    Args:
      kind: one of `DEVICES`.

    Example:
      >>> with built_for("TPU"):
      ...     has_accelerator()
      True
    """
    global _chosen
    assert kind in DEVICES, kind
    before, _chosen = _chosen, kind
    try:
        yield
    finally:
        _chosen = before
