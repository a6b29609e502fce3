"""Reading and creating model directories: `config.yaml`, `spiece.model` and a checkpoint.

All commands store and load models in this format. The root of the checkpoint's object graph has
the attributes `model` (with `encoder`, heads and memory) and, if training can be resumed,
`optimizer`.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from official.xlnet.checkpoints.any_format import foreign_source, load_config
from official.xlnet.checkpoints.checkpoint_files import reading_checkpoint
from official.xlnet.checkpoints.source import UNTIED, Source, open_source
from official.xlnet.checkpoints.xlnet_format import MEMORY, CheckpointFile
from official.xlnet.configs.data import TEXT_SETTINGS
from official.xlnet.configs.experiment import CONFIG_FILE, XLNetConfig
from official.xlnet.configs.registry import NETWORKS
from official.xlnet.errors import DataError, require_config, require_data
from official.xlnet.files.arguments import AnyPath
from official.xlnet.files.public import public
from official.xlnet.files.urls import local_copy
from official.xlnet.modeling.networks import Encoder
from official.xlnet.modeling.ops.keras import Variable, keras
from official.xlnet.runtime.host import host_state_kept
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

# Messages for a model without a part.
_LACKING = {
    "encoder": "encoder: expected a trained XLNet model",
    "lm_head": (
        "LM head: expected a pre-trained model, got an encoder that was saved alone or with the "
        "head of a task"
    ),
    "head": "head of its task: expected a fine-tuned model",
}


@public()
@host_state_kept()
def load_encoder(
    model_dir: AnyPath,
    name: str | None = None,
    trainable: bool = True,
    dtype: str | None = None,
) -> Encoder:
    """Loads the encoder of a model directory with its trained weights.

    Args:
      model_dir: the model directory or its URL.
      name: name of the layer. Default: `xlnet_encoder`, numbered as Keras numbers names.
      trainable: whether its weights are trained; a frozen encoder is used without dropout by the
        models of this package.
      dtype: precision policy, e.g. `mixed_bfloat16`. Default: Keras' global policy.

    Returns:
      The built encoder.

    Raises:
      ConfigError: the configuration is missing or invalid.
      DataError: the checkpoint is missing or damaged.

    Example:
      >>> encoder = load_encoder("runs/tiny/model")
    """
    config = load_config(model_dir)
    encoder = NETWORKS[config.model.network](config, name=name, dtype=dtype)
    encoder.build()
    restore(model_dir, encoder=encoder)
    encoder.trainable = trainable
    return encoder


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


def restore(model_dir: str, **parts: tf.Module) -> None:
    """Restores parts of a model from a trained model in any format.

    Args:
      model_dir: a model directory or its URL, whose latest valid checkpoint is read; an HF folder;
        or a TF1 release.
      **parts: built objects to restore, by their attribute name in the model, e.g. `encoder=…`.

    Fine-tuned models of the TF1 release lack the query stream's first vector, which only
    pre-training reads: it keeps its initial value.

    Raises:
      DataError: the checkpoint is missing, damaged, lacks a variable of a part, has one more, or
        has NaN or infinite values; or `lm_head` is not tied to the word embedding.
    """
    model, expected = tf.train.Checkpoint(**parts), f"the model that {CONFIG_FILE} describes"
    with local_copy(model_dir) as folder:
        opened = open_source(folder)
        source = opened if opened.format == "xlnet" else _converted(opened)
        for name in parts:
            if not any(path.startswith(f"{name}/") for path in source.shapes):
                raise DataError(f"{folder!r} has no {_LACKING.get(name, name)}")
        is_tied = "lm_head" not in parts or UNTIED not in opened.shapes
        tied = "an LM head with the weights of the word embedding"
        require_data(is_tied, folder, tied, f"another {UNTIED}; xlnet convert drops it")
        variables = _variables(model) if opened is source else []
        missing = set(map(id, variables))
        for path in source.shapes:
            part = path.partition("/")[0]
            if part not in parts:
                continue
            variable, where = _variable(model, path), f"{folder}: {path}"
            is_known = variable is not None or part == "auxiliary"  # It may be trained no more.
            require_data(is_known, where, f"a variable of {expected}", "one more")
            if variable is not None and tf.as_dtype(variable.dtype).is_floating:
                shape = tuple(variable.shape)
                got = source.shapes[path]
                require_data(got == shape, where, f"the shape {shape} of {expected}", got)
                variable.assign(source.read(path))
                missing.discard(id(variable))
    require_data(not missing, folder, f"all variables of {expected}", f"{len(missing)} are missing")


def _converted(source: Source) -> Any:
    """The weights of a model in another format, under our names."""
    from official.xlnet.checkpoints.convert.variable_map import Weights

    return Weights(source, "xlnet")


def _variables(model: tf.train.Checkpoint) -> list[tf.Variable]:
    """The floating point variables of parts of a model; others are the state of dropout."""
    objects = tf.train.TrackableView(model).descendants()
    variables = [x for x in objects if isinstance(x, tf.Variable | Variable)]
    return [x for x in variables if tf.as_dtype(x.dtype).is_floating]


def _variable(model: tf.train.Checkpoint, path: str) -> Any:
    """The variable at a path of attributes; None if there is none."""
    view, node = tf.train.TrackableView(model), model
    for name in path.split("/"):
        node = view.children(node).get(name)
        if node is None:
            return None
    return node


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
