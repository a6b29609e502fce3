"""Trained models in any format: a model directory, an HF folder or a TF1 release.

All loading goes through here and `restoring`. HF folders and TF1 releases are
converted in memory; nothing is written.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from official.xlnet.checkpoints.source import Source, open_source
from official.xlnet.configs.experiment import CONFIG_FILE, XLNetConfig, require_model
from official.xlnet.errors import require_config
from official.xlnet.files import file_system
from official.xlnet.files.arguments import AnyPath
from official.xlnet.files.checksums import content_checksum
from official.xlnet.files.public import public
from official.xlnet.files.urls import local_copy
from official.xlnet.tokenization.special_tokens import VOCAB_FILE
from official.xlnet.tokenization.tokenizer import Tokenizer, num_pieces

_SETTINGS = (".json", ".yaml")  # Of a model of any format, or of a data set.
_WEIGHTS = (".index", ".safetensors", ".bin")  # An index has a checksum of each variable.


def foreign_source(path: str) -> Source | None:
    """Opens an HF folder or a TF1 release.

    Args:
      path: a path of any kind.

    Returns:
      The opened folder. None for a model directory and for anything that is not a folder.

    Raises:
      DataError: the folder holds no model or a damaged one.
    """
    return open_source(path) if _is_foreign(path) else None


def _is_foreign(path: str) -> bool:
    """Whether a path is a folder, but not a model directory."""
    return file_system.is_dir(path) and not file_system.is_file(os.path.join(path, CONFIG_FILE))


@public()
def load_config(
    path: AnyPath, overrides: Sequence[str] = (), base: XLNetConfig | None = None
) -> XLNetConfig:
    """Loads the configuration of a trained model in any format, or of a YAML file.

    Args:
      path: a model directory, HF folder, TF1 release or YAML file; see also `recipe_path`.
      overrides: `key=value` strings; see `XLNetConfig.load`.
      base: values of keys that a YAML file lacks; see `XLNetConfig.load`.

    Returns:
      The validated configuration.

    Raises:
      ConfigError: the configuration is missing or invalid, or the model is not supported.
      DataError: the folder holds no model or a damaged one.

    Example:
      >>> load_config("xlnet_cased_L-12_H-768_A-12").model.num_layers
      12
    """
    _refuse_file_of_keras(path)
    require_model(path)
    if _is_foreign(path):
        with local_copy(path) as folder:
            config = open_source(folder).config
        config.apply(overrides)
        return config
    config = XLNetConfig.load(path, overrides, base)
    vocabulary = os.path.join(path, VOCAB_FILE)
    if config.model.vocab_size and file_system.is_file(vocabulary):
        config.model.fit_vocabulary(num_pieces(vocabulary), vocabulary)
    return config


def _refuse_file_of_keras(path: str) -> None:
    """Raises `ConfigError` for a file that Keras itself has written, by its name."""
    advice = ""
    if path.endswith((".keras", ".h5")):
        advice = "`keras.models.load_model` of the Keras that wrote it, after this package's import"
    if path.endswith(".weights.h5"):
        advice = "`load_weights` of a model like the one that was saved"
    expected = "a model directory, as save_pretrained writes it"
    is_refused = advice and not file_system.is_dir(path)
    require_config(not is_refused, path, expected, f"a file of Keras, which {advice} reads")


@public()
def load_tokenizer(path: AnyPath) -> Tokenizer:
    """Loads the tokenizer of a trained model in any format.

    Args:
      path: a model directory, HF folder, TF1 release or the output of `xlnet vocab`.

    Returns:
      The tokenizer, with the normalization options of the configuration.

    Raises:
      ConfigError: the configuration is missing or invalid, or a vocabulary without one has small
        letters only, so that its text was probably lower-cased.
      DataError: the vocabulary is missing or invalid.

    Example:
      >>> tokenizer = load_tokenizer("runs/tiny/model")
    """
    if file_system.is_remote(path) and _is_foreign(path):
        with local_copy(path) as folder:
            return load_tokenizer(folder)
    vocabulary = os.path.join(path, VOCAB_FILE)
    is_alone = file_system.is_file(vocabulary)
    if is_alone and not any(name.endswith(_SETTINGS) for name in file_system.names(path)):
        tokenizer = Tokenizer(vocabulary)
        has_capitals = 1 in tokenizer.letter_case or 0 not in tokenizer.letter_case
        advice = f"small ones only: load it by Tokenizer({vocabulary!r}, lowercase=True)"
        require_config(has_capitals, vocabulary, "capital letters", advice)
        return tokenizer
    data = load_config(path).data
    return Tokenizer(vocabulary, data.lowercase, data.keep_accents)


def weights_checksum(path: str | None) -> str | None:
    """Returns a checksum of the weights of a trained model in any format; see `content_checksum`.

    Args:
      path: a model directory, HF folder or TF1 release; None returns None.

    Raises:
      OSError: a file cannot be read.
    """
    if path is None:
        return None
    from official.xlnet.checkpoints.checkpoint_files import latest_checkpoint

    with local_copy(path) as folder:
        newest = latest_checkpoint(folder)
        names = [name for name in sorted(os.listdir(folder)) if name.endswith(_WEIGHTS)]
        paths = [os.path.join(folder, name) for name in names]
        return content_checksum(paths if newest is None else [f"{newest}.index"])
