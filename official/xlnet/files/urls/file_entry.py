"""A file as a listing describes it."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class FileEntry:
    """A file as a listing describes it, which can be opened without asking for it again.

    Attributes:
      path: its path or URL.
      size: its size in bytes.
      version: changes whenever the file is written.
    """

    path: str
    size: int
    version: str
