"""A trained model opened for reading, in one of the formats: its configuration and variables."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable

import numpy as np

from official.xlnet.configs.experiment import CONFIG_FILE, XLNetConfig
from official.xlnet.configs.registry import CHECKPOINT_FORMATS
from official.xlnet.errors import DataError, require_data
from official.xlnet.tokenization.special_tokens import VOCAB_FILE
from official.xlnet.tokenization.tokenizer import num_pieces
from official.xlnet.tokenization.vocabulary_file import has_vocabulary

# {format: the file that tells a folder of it}; the first that is there counts.
CONFIG_FILES = {"xlnet": CONFIG_FILE, "tf1": "xlnet_config.json", "hf": "config.json"}
# In the shapes of a source of HF's format if it is not the word embedding.
UNTIED = "lm_loss.weight"
_FLOATS = ("bfloat16", "float16", "float32", "float64")


@dataclasses.dataclass(frozen=True)
class Source:
    """A model in one of the formats.

    Attributes:
      format: name of the format: the attribute of `Row` with its variable names.
      path: directory of the model.
      config: configuration of the model; `task` describes its head, if any.
      shapes: {name: shape} of all its variables.
      read: returns the value of a variable, by its name, as float32.
    """

    format: str
    path: str
    config: XLNetConfig
    shapes: dict[str, tuple[int, ...]]
    read: Callable[[str], np.ndarray]

    @property
    def vocab_file(self) -> str:
        """Path of its SentencePiece model."""
        return os.path.join(self.path, VOCAB_FILE)


def open_source(path: str) -> Source:
    """Opens a model for reading; detects the format from the files in the directory.

    Args:
      path: directory of the model.

    Raises:
      DataError: the format is not recognized.
      ConfigError: the vocabulary has more pieces than the word embedding has rows.
    """
    for name, file in CONFIG_FILES.items():
        if os.path.isfile(os.path.join(path, file)):
            source = CHECKPOINT_FORMATS[name](path)
            if has_vocabulary(source.vocab_file):
                pieces = num_pieces(source.vocab_file)
                source.config.model.fit_vocabulary(pieces, source.vocab_file)
            return source
    raise DataError(
        f"{path!r}: no model found: expected the directory of a model, with {CONFIG_FILE} (ours), "
        f"{CONFIG_FILES['tf1']} (TF1 release) or {CONFIG_FILES['hf']} (HF)"
    )


def finite_floats(value: np.ndarray, where: str) -> np.ndarray:
    """Returns a stored variable as float32.

    Args:
      value: the variable.
      where: its file and name, for the message.

    Raises:
      DataError: it has another type, or values that are NaN or infinite in float32.
    """
    value = np.asarray(value)
    require_data(value.dtype.name in _FLOATS, where, "floating point numbers", value.dtype)
    with np.errstate(over="ignore"):
        value = value.astype(np.float32, copy=False)
    require_data(
        bool(np.isfinite(value).all()), where, "finite numbers in float32", "NaN or infinity"
    )
    return value
