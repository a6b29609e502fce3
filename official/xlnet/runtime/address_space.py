"""Limits of the address space (`ulimit -v`) and of threads (`ulimit -u`, those of a container).

TensorFlow and its compiler abort the process, without an exception, where a thread or a library
finds no room, and NumPy's libraries interrupt it. So the limits are compared with what they need
before they are loaded.
"""

from __future__ import annotations

import resource
import threading

from official.xlnet.errors import ConfigError
from official.xlnet.runtime.cores import num_cores

_LIBRARIES_BYTES = 4 << 30
_LEAST_THREADS, _CORE_THREADS = 16, 4
_CORE_BYTES = 128 << 20  # Threads and their heaps.


def needed_bytes() -> int:
    """Returns the address space that TensorFlow needs, without any model."""
    return _LIBRARIES_BYTES + _CORE_BYTES * num_cores()


def limit_bytes() -> int | None:
    """Returns the limit of the address space; None without one."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if limit == resource.RLIM_INFINITY else limit


def require_address_space() -> None:
    """Raises `ConfigError` if the limit leaves no room for TensorFlow."""
    limit = limit_bytes()
    if limit is not None and limit < needed_bytes():
        raise ConfigError(
            f"ulimit -v: expected an address space of at least {needed_bytes() / 1e9:.1f} GB, "
            f"besides the model's, got {limit / 1e9:.1f} GB"
        )


def require_threads() -> None:
    """Raises `ConfigError` if there may be too few threads for TensorFlow."""
    number, is_over, threads = _LEAST_THREADS + _CORE_THREADS * num_cores(), threading.Event(), []
    try:
        for _ in range(number):
            threads.append(threading.Thread(target=is_over.wait))
            threads[-1].start()
    except RuntimeError:
        raise ConfigError(
            f"ulimit -u, or the limit of processes of the container: expected at least {number} "
            f"threads, got {len(threads) - 1}"
        ) from None
    finally:
        is_over.set()
        for thread in threads:
            if thread.ident:
                thread.join()
