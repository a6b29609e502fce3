"""Local paths that match a pattern; directories that links reach repeatedly are searched once."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator


def local_glob(pattern: str) -> list[str]:
    """Returns the local paths that match a pattern; see `file_system.glob`."""
    if os.path.basename(pattern) == "**":
        pattern = f"{pattern}/*"
    return _matches(pattern)


def _matches(pattern: str) -> list[str]:
    """As `glob.glob`, but directories of `**` that links reach repeatedly are searched once."""
    before, stars, after = pattern.partition("**/")
    if not stars or before[-1:] not in ("", "/"):
        return glob.glob(pattern)
    matches: dict[str, None] = {}
    for base in glob.glob(before) if before else [""]:
        for folder in _folders(base, set()):
            escaped = glob.escape(folder)
            matches |= dict.fromkeys(_matches(os.path.join(escaped, after)))
    return list(matches)


def _folders(folder: str, visited: set[tuple[int, int]]) -> Iterator[str]:
    """Yields a directory and those below it, in order, except hidden and visited directories."""
    status = os.stat(folder or os.curdir)
    identity = (status.st_dev, status.st_ino)
    if identity in visited:
        return
    visited.add(identity)
    yield folder
    for name in sorted(glob.glob("*/", root_dir=folder or None)):
        yield from _folders(os.path.join(folder, name), visited)
