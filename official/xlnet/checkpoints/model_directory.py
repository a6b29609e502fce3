"""Model directories of runs: `config.yaml`, `spiece.model` and a checkpoint.

All commands store and load models in this format, see `restoring`. The root of the checkpoint's
object graph has the attributes `model` (with `encoder`, heads and memory) and, if training can be
resumed, `optimizer`.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from official.xlnet.checkpoints.any_format import foreign_source, load_config
from official.xlnet.checkpoints.checkpoint_files import reading_checkpoint
from official.xlnet.configs.data import TEXT_SETTINGS
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.errors import require_config
from official.xlnet.modeling.ops.keras import keras
from official.xlnet.tokenization.vocabulary_file import read_vocabulary, write_vocabulary

# Configuration keys that have to match for two models to have compatible weights.
ARCHITECTURE = (
    "network",
    "vocab_size",
    "embedding_rows",
    "num_layers",
    "depth",
    "d_model",
    "num_heads",
    "d_inner",
    "activation",
    "untie_r",
)

# The parts of a model that a model directory keeps, by their attribute.
PARTS = ("encoder", "lm_head", "auxiliary", "head")


@contextlib.contextmanager
def merged_weights(model: Any) -> Iterator[None]:
    """Context manager: the weights of a model as a model directory has them, without adapters."""
    encoder = getattr(model, "encoder", model)
    lora = encoder.without_lora() if encoder.lora else None
    kernels = lora.add() if lora else []
    try:
        yield
    finally:
        encoder.lora = lora
        for kernel, value in kernels:
            kernel.assign(value)


def restore_run(path: str, state: tf.train.Checkpoint) -> None:
    """Restores the state of a run, which may continue with or without loss scaling.

    The memory of a model stays empty if the checkpoint has none.

    Args:
      path: path prefix of the checkpoint.
      state: what the checkpoint holds, with its `optimizer`, built. A `LossScaleOptimizer` keeps
        its scale if the checkpoint, of a run in another precision, has none.

    Raises:
      DataError: the checkpoint is damaged or of another model.
    """
    from official.xlnet.checkpoints.xlnet_format import MEMORY, CheckpointFile

    names = CheckpointFile(path).shapes
    was_scaled = any(name.startswith("optimizer/loss_scale/") for name in names)
    memory = getattr(state.model, "memory", None)
    if memory is not None:
        memory.is_saved = MEMORY in names
    is_scaled = isinstance(state.optimizer, keras.mixed_precision.LossScaleOptimizer)
    with reading_checkpoint(path) as plain:
        status = state.restore(plain).expect_partial()
        if is_scaled == was_scaled:
            status.assert_consumed()


def create_model_dir(model_dir: str, config: XLNetConfig, vocab_file: str) -> None:
    """Creates a model directory with a configuration and a vocabulary, without a checkpoint.

    Args:
      model_dir: the model directory; created if it does not exist.
      config: written to `config.yaml`.
      vocab_file: copied to `spiece.model`, with its checksum beside it.
    """
    os.makedirs(model_dir, exist_ok=True)
    write_vocabulary(read_vocabulary(vocab_file), model_dir)
    config.save(model_dir)


def check_compatible(config: XLNetConfig, model_dir: str) -> None:
    """Checks that a configuration has the architecture and text settings of a trained model.

    Args:
      config: the configuration.
      model_dir: the model, in any format. A TF1 release does not say how text is normalized.

    Raises:
      ConfigError: they differ.
    """
    saved, source = load_config(model_dir), foreign_source(model_dir)
    check_same(saved, config, "model", ARCHITECTURE, model_dir)
    if source is None or source.format != "tf1":
        check_same(saved, config, "data", TEXT_SETTINGS, model_dir)


def check_same(
    saved: XLNetConfig, wanted: XLNetConfig, section: str, keys: tuple[str, ...], source: str
) -> None:
    """Checks that two configurations agree on some keys.

    Args:
      saved: the configuration of an existing model.
      wanted: the configuration to check.
      section: name of the section, e.g. `model`.
      keys: keys in the section.
      source: where `saved` comes from, for the message.

    Raises:
      ConfigError: the values of a key differ; the message names the first such key.
    """
    was, now = (getattr(config, section).as_dict() for config in (saved, wanted))
    for key in keys:
        require_config(
            was[key] == now.get(key),
            f"{section}.{key}",
            f"{was[key]!r}, as in the model in {source}",
            repr(now.get(key)),
        )
