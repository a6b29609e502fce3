"""SHA-256 checksums of files."""

from __future__ import annotations

import contextlib
import hashlib
import sys
from collections.abc import Iterable

from official.xlnet.errors import require_data
from official.xlnet.files import file_system

_CHUNK_BYTES = 1 << 20
ALL_BYTES = "sha256:"  # Earlier checksums of weights were of samples of the bytes.


def content_checksum(paths: Iterable[str]) -> str:
    """Returns a checksum of the content of files, in order: `sha256:` and hexadecimal digits."""
    digests = " ".join(str(sha256_of(path)) for path in paths)
    return ALL_BYTES + hashlib.sha256(digests.encode()).hexdigest()


def check_sha256(
    path: str, expected: str, meaning: str, reason: str = "the file is damaged"
) -> None:
    """Checks the content of a file.

    Args:
      path: the file.
      expected: its SHA-256 in hexadecimal.
      meaning: where the expected checksum is from, for the message.
      reason: what a different checksum means, for the message.

    Raises:
      DataError: there is no file, or it has another checksum.
    """
    checksum = sha256_of(path)
    got = f"{checksum[:12]}…: {reason}" if checksum else "no file"
    require_data(checksum == expected, path, f"SHA-256 {expected[:12]}… ({meaning})", got)


def sha256_of(path: str, start: int = 0, stop: int | None = None) -> str | None:
    """Returns the SHA-256 of a file in hexadecimal, or None if it does not exist.

    Args:
      path: the file.
      start: first byte of the part to read.
      stop: end of the bytes (exclusive); the end of the file by default.
    """
    digest = hashlib.sha256()
    with contextlib.suppress(FileNotFoundError), file_system.open(path, "rb") as file:
        file.seek(start)
        num_bytes_left = sys.maxsize if stop is None else stop - start
        while data := file.read(min(_CHUNK_BYTES, num_bytes_left)):
            digest.update(data)
            num_bytes_left -= len(data)
        return digest.hexdigest()
    return None
