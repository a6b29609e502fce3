"""SHA-256 checksums of exported versions, of the inputs of a run, and of single files.

The checksums of an exported version have the format of `sha256sum`:

    cd exported/1 && sha256sum --check assets.extra/sha256sums

`inputs.json` of an output directory has a checksum of each input of its run. A run is only resumed
with the same inputs.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
from collections.abc import Iterable, Mapping

from official.xlnet.errors import require_config, require_data
from official.xlnet.files import file_system
from official.xlnet.files.atomic import write_bytes
from official.xlnet.files.json_files import read_json, write_json

CHECKSUMS_FILE = os.path.join("assets.extra", "sha256sums")  # TF Serving leaves it alone.
INPUTS_FILE = "inputs.json"
_CHUNK_BYTES = 1 << 20
_ALL_BYTES = "sha256:"  # Earlier checksums of weights were of samples of the bytes.


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


def content_checksum(paths: Iterable[str]) -> str:
    """Returns a checksum of the content of files, in order: `sha256:` and hexadecimal digits."""
    digests = " ".join(str(sha256_of(path)) for path in paths)
    return _ALL_BYTES + hashlib.sha256(digests.encode()).hexdigest()


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


def check_inputs(
    directory: str, inputs: Mapping[str, str | None], is_begun: bool, writes: bool = True
) -> None:
    """Records the inputs of a new run, or compares those of a resumed run with its record.

    Args:
      directory: output directory of the run.
      inputs: {role of an input, e.g. `training data`: its checksum, or None if this call does not
        name it}.
      is_begun: whether the directory has a run, which is finished or will be resumed.
      writes: whether this process writes the record.

    Raises:
      ConfigError: an input differs from the one that the run was started with.
      DataError: the directory has a model that was not written by a run.
    """
    path = os.path.join(directory, INPUTS_FILE)
    if not is_begun:
        if writes:
            os.makedirs(directory, exist_ok=True)
            write_json(path, {name: checksum for name, checksum in inputs.items() if checksum})
        return
    is_run = os.path.exists(path)
    require_data(is_run, directory, "a run to go on with", f"a model without {INPUTS_FILE}")
    saved = read_json(path, dict[str, str])
    for name, checksum in inputs.items():
        if checksum is None or checksum == saved.get(name):
            continue
        is_older_kind = checksum.startswith(_ALL_BYTES) and ":" not in saved.get(name, ":")
        got = "other ones" if name in saved else f"a run that had no {name}"
        require_config(
            is_older_kind,
            directory,
            f"the {name} that its run was made from",
            f"{got}; choose another output directory, or remove this one to train anew",
        )
