"""Paths with any characters."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Iterator

_PATTERN_CHARACTERS = re.compile(r"[*?\[\]\\{}]")


def is_plain(path: str) -> bool:
    """Whether a path, as a pattern, matches itself alone."""
    return not _PATTERN_CHARACTERS.search(path)


@contextlib.contextmanager
def plain_folder(folder: str) -> Iterator[str]:
    """Yields a path to the same folder that TensorFlow does not take for a pattern.

    TensorFlow looks for the files of a checkpoint by a pattern that the folder's path is part of; a
    `[` in it then means something else. Where there are such characters, a symbolic link stands
    for the folder.

    Args:
      folder: a path of a folder, which may be made later.

    Example:
      >>> with plain_folder("models/a[1]") as folder:
      ...     tf.train.load_checkpoint(os.path.join(folder, "ckpt-7"))
    """
    if is_plain(os.path.abspath(folder)):
        yield folder
        return
    with tempfile.TemporaryDirectory() as directory:
        link = os.path.join(directory, "folder")
        os.symlink(os.path.abspath(folder), link, target_is_directory=True)
        yield link
