"""Returning freed tensor memory to the operating system."""

from __future__ import annotations

import ctypes
import os

from absl import logging

from official.xlnet.configs.training import TrainingConfig

# Parameters of glibc's mallopt(3).
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_LARGE_BYTES = 1 << 20  # Blocks above this size are returned as soon as they are freed.


def release_memory(training: TrainingConfig) -> None:
    """Configures the allocator to return freed memory of large tensors to the operating system.

    By default, TensorFlow with oneDNN caches freed memory and reuses it for later tensors, which
    is faster but fragments memory. Has to be called before TensorFlow is initialized; requires
    glibc. Does nothing unless `training.release_memory` is set.

    Args:
      training: the training configuration.
    """
    if not training.release_memory:
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        logging.warning("training.release_memory: ignored, as it requires Linux with glibc")
        return
    os.environ["TF_ONEDNN_USE_SYSTEM_ALLOCATOR"] = "1"
    # Setting the threshold disables its dynamic adjustment, which would keep large freed blocks.
    mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)
    mallopt(_M_TRIM_THRESHOLD, _LARGE_BYTES)
