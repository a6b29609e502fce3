"""Model directories: `config.yaml`, `spiece.model` and a TensorFlow checkpoint.

Every command that makes a model writes one, every command that takes a model reads one. The
checkpoint's object graph is `model` (with `encoder`, heads, memory) and, in a directory that a
run can continue from, `optimizer`.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator

import tensorflow as tf

from official.xlnet.checkpoints.checkpoint_files import newest_checkpoint
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.errors import ConfigError, DataError
from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
from official.xlnet.modeling.networks.xlnet_encoder import XLNetEncoder
from official.xlnet.tokenization.special_tokens import VOCAB_FILE

# What has to be equal for the variables of two models to have the same shapes and meaning.
ARCHITECTURE = (
    "vocab_size",
    "num_layers",
    "d_model",
    "num_heads",
    "d_inner",
    "activation",
    "untie_r",
)


def load_encoder(model_dir: str) -> XLNetEncoder:
    """Returns the encoder of a model directory, with its trained weights.

    Raises:
      ConfigError: there is no usable configuration.
      DataError: there is no usable checkpoint.
    """
    encoder = XLNetEncoder(XLNetConfig.load(model_dir))
    encoder.build()
    restore(model_dir, encoder=encoder)
    return encoder


def load_pretrainer(model_dir: str, config: XLNetConfig | None = None) -> XLNetPretrainer:
    """Returns the pre-training model of a model directory, with its trained weights.

    Args:
      model_dir: the directory.
      config: a configuration of the same architecture, by default the directory's own. The
        memory starts empty either way.

    Raises:
      ConfigError: there is no usable configuration, or the architectures differ.
      DataError: there is no usable checkpoint.
    """
    saved = XLNetConfig.load(model_dir)
    config = config or saved
    check_same(saved, config, "model", ARCHITECTURE, model_dir)
    model = XLNetPretrainer(config)
    restore(model_dir, encoder=model.encoder, lm_head=model.lm_head)
    return model


def restore(model_dir: str, **parts: tf.Module) -> None:
    """Reads the newest sound checkpoint of a model directory into built parts of a model.

    Args:
      model_dir: the directory.
      **parts: the objects under their names in the model, e.g. `encoder=…`.

    Raises:
      DataError: there is no checkpoint, it is damaged, or it lacks a variable of a part.
    """
    saved = newest_checkpoint(model_dir)
    if saved is None:
        raise DataError(f"no checkpoint in {model_dir!r}: expected a model directory")
    path = saved.prefix
    with reading_checkpoint(path):
        names = tf.train.load_checkpoint(path).get_variable_to_shape_map()
    for name, part in parts.items():
        if not any(key.startswith(f"model/{name}/") for key in names):
            lacking = ", ".join(v.name.partition(":")[0] for v in part.variables)
            raise DataError(f"{model_dir}: expected a model with {lacking}, got one without")
    checkpoint = tf.train.Checkpoint(model=tf.train.Checkpoint(**parts))
    with reading_checkpoint(path):
        status = checkpoint.restore(path)
        status.assert_existing_objects_matched().expect_partial()


@contextlib.contextmanager
def reading_checkpoint(path: str) -> Iterator[None]:
    """Turns what TensorFlow raises about a checkpoint that cannot be read into a `DataError`."""
    try:
        yield
    except (tf.errors.OpError, AssertionError, ValueError, IndexError, RuntimeError) as error:
        message = str(error).strip().partition("\n")[0]
        raise DataError(f"checkpoint {path} cannot be used: {message}") from error


def create_model_dir(model_dir: str, config: XLNetConfig, vocab_file: str) -> None:
    """Makes a model directory that lacks only its checkpoint.

    Args:
      model_dir: the directory; made if it is not there.
      config: written to `config.yaml`.
      vocab_file: copied to `spiece.model`.
    """
    os.makedirs(model_dir, exist_ok=True)
    target = os.path.join(model_dir, VOCAB_FILE)
    shutil.copyfile(vocab_file, target + ".tmp")
    os.replace(target + ".tmp", target)
    config.save(model_dir)


def check_same(
    saved: XLNetConfig, given: XLNetConfig, section: str, keys: tuple[str, ...], source: str
) -> None:
    """Raises `ConfigError` that names the first of `keys` in which two configurations differ."""
    for key in keys:
        was = getattr(getattr(saved, section), key)
        now = getattr(getattr(given, section), key)
        if was != now:
            raise ConfigError(
                f"{section}.{key}: expected {was!r}, as in the model in {source}, got {now!r}"
            )
