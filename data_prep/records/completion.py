"""Tasks that are done once: their completion records have the checksums of what they wrote."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import IO, Any

from official.xlnet.files.checksums import sha256_of
from official.xlnet.files.json_files import read_record, write_json


class HashedFile:
    """A binary file that is written, with the SHA-256 of what was written so far.

    Args:
      file: the file to write to.
    """

    def __init__(self, file: IO[bytes]):
        self._file = file
        self._digest = hashlib.sha256()

    def write(self, data: bytes) -> None:
        """Writes bytes."""
        self._digest.update(data)
        self._file.write(data)

    @property
    def sha256(self) -> str:
        """The checksum, in hexadecimal."""
        return self._digest.hexdigest()


def run_once(
    record: str, outputs: Sequence[str], work_dir: str, task: Callable[[], dict[str, Any]]
) -> dict[str, Any]:
    """Runs a task, unless it is complete by the checksums of its outputs.

    Args:
      record: path of the completion record, which is written last.
      outputs: the files that the task writes.
      work_dir: directory of temporary files.
      task: writes the outputs; returns the completion record, with their checksums as `sha256`.

    Returns:
      The completion record, plus "resumed": whether the task had been completed before.
    """
    completion = read_record(record)
    if completion and completion.get("sha256") == [sha256_of(path) for path in outputs]:
        return {**completion, "resumed": True}
    completion = task()
    write_json(record, completion, work_dir)
    return {**completion, "resumed": False}
