"""Checksums of the files of an exported version, in the format of `sha256sum`.

cd exported/1 && sha256sum --check assets.extra/sha256sums
"""

from __future__ import annotations

import os

from official.xlnet.files import file_system
from official.xlnet.files.atomic import write_bytes
from official.xlnet.files.checksums import sha256_of

CHECKSUMS_FILE = os.path.join("assets.extra", "sha256sums")  # TF Serving leaves it alone.


def write_checksums(folder: str) -> None:
    """Writes the SHA-256 of every file in a folder and its subfolders to `CHECKSUMS_FILE` in it."""
    paths = []
    for directory, _, names in os.walk(folder):
        paths += [os.path.relpath(os.path.join(directory, name), folder) for name in names]
    lines = [f"{sha256_of(os.path.join(folder, path))}  {path}\n" for path in sorted(paths)]
    write_bytes(os.path.join(folder, CHECKSUMS_FILE), "".join(lines).encode())


def has_checksums(folder: str) -> bool:
    """Whether the files of a folder have the checksums that `write_checksums` recorded."""
    lines = file_system.read_bytes(os.path.join(folder, CHECKSUMS_FILE)).decode().splitlines()
    pairs = [line.split("  ", 1) for line in lines]
    return all(sha256_of(os.path.join(folder, path)) == digest for digest, path in pairs)
