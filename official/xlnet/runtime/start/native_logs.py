"""Log lines of TensorFlow's C++ code that `TF_CPP_MIN_LOG_LEVEL` does not hide.

XLA and Grappler write by Abseil's logs, whose least severity has no environment variable. It is set
by a C++ function that TensorFlow exports; its name has the version of Abseil in it, so it is looked
up in the library. Where there is none, the lines are shown.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import re

_FUNCTION = re.compile(rb"_ZN4absl\w{0,40}?14SetMinLogLevelENS0_18LogSeverityAtLeastE")
_LIBRARY = "libtensorflow_framework.so.2"
_ERROR = 2  # Errors are shown at any level.


def hide_below_errors(directory: str) -> None:
    """Hides messages and warnings, as far as `TF_CPP_MIN_LOG_LEVEL` says; errors are shown.

    Args:
      directory: where TensorFlow, which has been imported, is installed.
    """
    text = os.environ.get("TF_CPP_MIN_LOG_LEVEL", "0")
    level = min(int(text), _ERROR) if text.isdecimal() else 0
    path = os.path.join(directory, _LIBRARY)
    try:
        function = _function_in(path)
        if function:
            getattr(ctypes.CDLL(path), function)(level)
    except (OSError, AttributeError):  # Another system, or another way of building TensorFlow.
        return


def _function_in(path: str) -> str:
    """The name of the function in a library; empty if it has none."""
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        match = _FUNCTION.search(content)
        return match[0].decode() if match else ""
