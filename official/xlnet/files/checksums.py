"""Checksums of files: of an exported version, of the inputs of a run, and of single files.

The checksums of an exported version have the format of `sha256sum`:

    cd exported/1 && sha256sum --check assets.extra/sha256sums

`inputs.json` of an output directory has a checksum of the content of each input of its run. A run
that is finished or resumed is compared with it, so that the same command is resumed on the same
inputs only.
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
    found = sorted(
        os.path.relpath(os.path.join(directory, file), folder)
        for directory, _, files in os.walk(folder)
        for file in files
    )
    lines = [f"{sha256_of(os.path.join(folder, path))}  {path}\n" for path in found]
    write_bytes(os.path.join(folder, CHECKSUMS_FILE), "".join(lines).encode())


def has_checksums(folder: str) -> bool:
    """Whether each file of a folder is as `write_checksums` recorded it."""
    lines = file_system.read_bytes(os.path.join(folder, CHECKSUMS_FILE)).decode().splitlines()
    pairs = [line.split("  ", 1) for line in lines]
    return all(sha256_of(os.path.join(folder, path)) == digest for digest, path in pairs)


def content_checksum(paths: Iterable[str]) -> str:
    """Returns a checksum of all bytes of files, in their order: `sha256:` and hexadecimal."""
    digests = " ".join(str(sha256_of(path)) for path in paths)
    return _ALL_BYTES + hashlib.sha256(digests.encode()).hexdigest()


def check_sha256(
    path: str, expected: str, meaning: str, reason: str = "the file is damaged"
) -> None:
    """Checks the content of a file.

    Args:
      path: the file.
      expected: its SHA-256 in hexadecimal.
      meaning: where that is from, for the message.
      reason: what another one means.

    Raises:
      DataError: there is no file, or it has another checksum.
    """
    found = sha256_of(path)
    got = f"{found[:12]}…: {reason}" if found else "no file"
    require_data(found == expected, path, f"SHA-256 {expected[:12]}… ({meaning})", got)


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
        while data := file.read(
            min(_CHUNK_BYTES, (sys.maxsize if stop is None else stop) - file.tell())
        ):
            digest.update(data)
        return digest.hexdigest()
    return None


def check_inputs(
    directory: str, inputs: Mapping[str, str | None], is_begun: bool, writes: bool = True
) -> None:
    """Compares the inputs of a begun run with its record, or records the inputs of a new run.

    Args:
      directory: output directory of the run.
      inputs: checksum of each input by its role, e.g. `training data`; None if this call does
        not name it.
      is_begun: whether the directory holds a run that is finished or to be resumed.
      writes: whether this process writes the record.

    Raises:
      ConfigError: an input is not the one that the run was made from.
      DataError: the directory holds a model that no run wrote.
    """
    path = os.path.join(directory, INPUTS_FILE)
    if not is_begun:
        if writes:
            os.makedirs(directory, exist_ok=True)
            write_json(path, {name: value for name, value in inputs.items() if value})
        return
    is_run = os.path.exists(path)
    require_data(is_run, directory, "a run to go on with", f"a model without {INPUTS_FILE}")
    saved = read_json(path, dict[str, str])
    for name, value in inputs.items():
        is_older = str(value).startswith(_ALL_BYTES) and ":" not in saved.get(name, ":")
        found = "other ones" if name in saved else f"a run that had no {name}"
        require_config(
            is_older or value in (None, saved.get(name)),
            directory,
            f"the {name} that its run was made from",
            f"{found}; choose another output directory, or remove this one to train anew",
        )
