"""The file of a vocabulary, `spiece.model`, with its checksum beside it.

In an HF folder, `tokenizer.json` may hold the vocabulary, or tokens that were added to it
(`hf_vocabulary`).
"""

from __future__ import annotations

import hashlib
import os

from official.xlnet.errors import DataError, require_data
from official.xlnet.files import file_system
from official.xlnet.files.atomic import write_bytes
from official.xlnet.tokenization.special_tokens import (
    ADDED_JSON,
    SETTINGS,
    TOKENIZER_JSON,
    VOCAB_FILE,
)

RECORD = ".sha256"  # Added to the name of a vocabulary.


def vocabulary_path(path: str) -> str:
    """Returns the path of a vocabulary, given as a file or as the directory that contains it."""
    return os.path.join(path, VOCAB_FILE) if file_system.is_dir(path) else path


def has_vocabulary(model_file: str) -> bool:
    """Whether a vocabulary is there, as a file or in an HF `tokenizer.json` beside it."""
    other = os.path.join(os.path.dirname(model_file), TOKENIZER_JSON)
    is_there = os.path.basename(model_file) == VOCAB_FILE and file_system.is_file(other)
    return is_there or file_system.is_file(model_file)


def read_vocabulary(model_file: str) -> bytes:
    """Returns a vocabulary with its added tokens; see `hf_vocabulary`.

    Args:
      model_file: the file, or the directory that contains it.

    Raises:
      DataError: there is none, or it is damaged.
    """
    model_file = vocabulary_path(model_file)
    try:
        model_proto = None
        if file_system.is_file(model_file) or not has_vocabulary(model_file):
            model_proto = file_system.read_bytes(model_file)
        if _has_hf_settings(model_file):
            from official.xlnet.tokenization.hf_vocabulary import hf_vocabulary

            model_proto = hf_vocabulary(model_file, model_proto)
    except OSError as error:
        raise DataError(
            f"no vocabulary at {model_file!r}: expected a SentencePiece model "
            f"({error.strerror or error})"
        ) from None
    where = f"vocabulary {model_file!r}"
    require_data(bool(model_proto), where, "a SentencePiece model", "an empty file")
    return model_proto or b""


def _has_hf_settings(model_file: str) -> bool:
    """Whether files of HF beside a vocabulary may change it."""
    folder, name = os.path.split(model_file)
    files = (TOKENIZER_JSON, SETTINGS, ADDED_JSON)
    return name == VOCAB_FILE and any(
        file_system.is_file(os.path.join(folder, file)) for file in files
    )


def write_vocabulary(model_proto: bytes, directory: str) -> None:
    """Writes a vocabulary to `spiece.model`, and its checksum to `spiece.model.sha256` beside it.

    `Tokenizer` compares the two, so that a model is never read with another model's vocabulary;
    so does `sha256sum --check`.
    """
    target = os.path.join(directory, VOCAB_FILE)
    record = f"{hashlib.sha256(model_proto).hexdigest()}  {VOCAB_FILE}\n"
    for path, data in ((target, model_proto), (target + RECORD, record.encode())):
        write_bytes(path, data)


def require_no_owner(directory: str, model_proto: bytes, *others: str) -> None:
    """Raises `DataError` if a vocabulary would replace the vocabulary of a model.

    Args:
      directory: where the vocabulary is to be written.
      model_proto: its content.
      *others: further files that mark a vocabulary as owned, besides the files of a model.
    """
    target = os.path.join(directory, VOCAB_FILE)
    if not file_system.is_file(target) or read_vocabulary(target) == model_proto:
        return
    if recorded_checksum(target) == hashlib.sha256(model_proto).hexdigest():
        return  # It is damaged.
    for name in (VOCAB_FILE + RECORD, "config.json", "xlnet_config.json", *others):
        require_data(
            not file_system.is_file(os.path.join(directory, name)),
            target,
            "no other vocabulary there",
            f"one that a model or a data set needs ({name} is beside it); choose another "
            "output directory",
        )


def recorded_checksum(model_file: str) -> str | None:
    """Returns the SHA-256 in the record beside a vocabulary; None without a record."""
    try:
        with file_system.open(model_file + RECORD, "rb") as file:
            return file.read(64).decode("ascii", "replace")
    except FileNotFoundError:
        return None
