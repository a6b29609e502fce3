"""What is wrong with records that TensorFlow could not read; imported after its error."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from official.xlnet.data.file_names import MANIFEST_FILE
from official.xlnet.data.record_features import WRONG
from official.xlnet.data.record_files.checksums import check_files
from official.xlnet.data.schema import Manifest

# TensorFlow's errors about records of another schema and lanes of another length.
_NO_EXAMPLE = re.compile(r"(?:Name: <unknown>, |Key: |Could not parse example|Data types)[^\n]*")
_ANOTHER_LENGTH = re.compile(r"expected to contain \d+ elements[^\n.]*")


def what_is_wrong(error: Any, paths: Sequence[str], split: str) -> str | None:
    """Returns the sentence about what records hold, or None if the error is about something else.

    Args:
      error: the error of TensorFlow; a `UnicodeDecodeError` for a message with a record's bytes.
      paths: directories whose records are read together.
      split: `train` or `heldout`.

    Raises:
      DataError: a record file is missing or damaged, by its checksum.
    """
    for path in paths:
        check_files(path, Manifest.load(path).splits[split])
    if isinstance(error, UnicodeDecodeError):
        message = error.object.decode(errors="backslashreplace")
    else:
        message = error.message
    where = f"{', '.join(paths)}, split {split}"
    if WRONG in message:
        details = message.partition(WRONG)[2].partition("\n")[0]
        return f"{where}: {details.replace('] [', ' ').rstrip(']')}"
    length = _ANOTHER_LENGTH.search(message)
    if length:
        return f"{where}: a lane was {length[0]} (windows)"
    problem = _NO_EXAMPLE.search(message)
    if problem and "ParseExample" in message:
        return f"{where}: expected records of the schema, got {problem[0]}"
    if isinstance(error, tf.errors.DataLossError):
        return f"{where}: expected record files, compressed as {MANIFEST_FILE} says: {message}"
    return None
