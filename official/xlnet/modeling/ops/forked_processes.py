"""Forked processes, in which TensorFlow would wait for threads that only their parent has."""

from __future__ import annotations

import os
import sys
from typing import Any

from official.xlnet.errors import ConfigError


def _refuse_tensorflow() -> None:
    """Lets TensorFlow raise an error in a forked process, where it would wait for lost threads."""
    module = sys.modules["tensorflow.python.eager.context"]

    def refuse(context: Any) -> None:
        raise ConfigError(
            "expected a new process, got one that was forked after TensorFlow had been used: start "
            "processes by multiprocessing.get_context('spawn')"
        )

    if getattr(module._context, "_initialized", False):
        module.Context.ensure_initialized = refuse
        _refused_in.add(os.getpid())


def may_use_tensorflow() -> bool:
    """Whether TensorFlow works in this process, and not a `ConfigError` says that it was forked."""
    return os.getpid() not in _refused_in


_refused_in: set[int] = set()  # Ids of processes.
os.register_at_fork(after_in_child=_refuse_tensorflow)
