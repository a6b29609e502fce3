"""Paths that TensorFlow does not take for patterns."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Iterator

_PATTERN_CHARACTERS = re.compile(r"[*?\[\]\\{}]")


@contextlib.contextmanager
def plain_folder(folder: str) -> Iterator[str]:
    """Context manager that yields a path to a folder without the characters of patterns.

    TensorFlow looks for the files of a checkpoint by a pattern that the folder's path is part of,
    in which a `[` has another meaning. For a path with such characters, a symbolic link is made.

    Args:
      folder: a path of a folder, which may be made later.

    Example:
      >>> with plain_folder("models/a[1]") as folder:
      ...     tf.train.load_checkpoint(os.path.join(folder, "ckpt-7"))
    """
    if not _PATTERN_CHARACTERS.search(os.path.abspath(folder)):
        yield folder
        return
    with tempfile.TemporaryDirectory() as directory:
        link = os.path.join(directory, "folder")
        os.symlink(os.path.abspath(folder), link, target_is_directory=True)
        yield link
