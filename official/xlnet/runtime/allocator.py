"""What happens to the memory of tensors that are no longer needed."""

from __future__ import annotations

import ctypes
import os

from absl import logging

from official.xlnet.configs.training import TrainingConfig

# Parameters of glibc's mallopt(3).
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_LARGE_BYTES = 1 << 20


def release_memory(training: TrainingConfig) -> None:
    """Gives the memory of large tensors back to the system when nothing needs them any more.

    TensorFlow with oneDNN otherwise keeps what it ever took and cuts it up for the next tensors,
    which is faster, but leaves gaps. Has to be called before TensorFlow starts; needs glibc.
    """
    if not training.release_memory:
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        logging.warning("training.release_memory: needs Linux with glibc; nothing is released")
        return
    os.environ["TF_ONEDNN_USE_SYSTEM_ALLOCATOR"] = "1"
    # Fixed: by default glibc raises the first with every large block that is freed.
    mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)
    mallopt(_M_TRIM_THRESHOLD, _LARGE_BYTES)
