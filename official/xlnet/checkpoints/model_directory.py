"""Loading and creating model directories: `config.yaml`, `spiece.model` and a checkpoint.

All commands store and load models in this format. The root of the checkpoint's object graph has
the attributes `model` (with `encoder`, heads and memory) and, if training can be resumed,
`optimizer`.
"""

from __future__ import annotations

import contextlib
import copy
import os
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow as tf

from official.xlnet.checkpoints.any_format import foreign_source, load_config
from official.xlnet.checkpoints.checkpoint_files import (
    reading_checkpoint,
    recorded_steps,
)
from official.xlnet.checkpoints.classifier_directory import sigmoid_head, task_configuration
from official.xlnet.checkpoints.convert import open_source
from official.xlnet.checkpoints.convert.hf_format import UNTIED
from official.xlnet.checkpoints.convert.tf1_format import CheckpointFile
from official.xlnet.checkpoints.convert.variable_map import Weights
from official.xlnet.configs.data import TEXT_SETTINGS
from official.xlnet.configs.experiment import CONFIG_FILE, XLNetConfig
from official.xlnet.configs.registry import NETWORKS
from official.xlnet.configs.validation import require
from official.xlnet.errors import DataError, require_config, require_data
from official.xlnet.files.arguments import AnyPath, OutputDirectory
from official.xlnet.files.public import public
from official.xlnet.files.staging import local_copy, plain_folder
from official.xlnet.modeling.models.xlnet_classifier import XLNetClassifier
from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
from official.xlnet.modeling.models.xlnet_task_model import XLNetTaskModel
from official.xlnet.modeling.networks import Encoder
from official.xlnet.modeling.ops.keras import Variable, keras
from official.xlnet.runtime.host import host_state_kept
from official.xlnet.tokenization.tokenizer import Tokenizer, read_vocabulary, write_vocabulary

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

_STATE = "checkpoint"  # Names the checkpoint of a directory, which has none without it.

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
def load_encoder(model_dir: AnyPath) -> Encoder:
    """Loads the encoder of a model directory with its trained weights.

    Args:
      model_dir: the model directory or its URL.

    Returns:
      The built encoder.

    Raises:
      ConfigError: the configuration is missing or invalid.
      DataError: the checkpoint is missing or damaged.

    Example:
      >>> encoder = load_encoder("runs/tiny/model")
    """
    config = load_config(model_dir)
    encoder = NETWORKS[config.model.network](config)
    encoder.build()
    restore(model_dir, encoder=encoder)
    return encoder


@public()
@host_state_kept()
def load_pretrainer(
    model_dir: AnyPath, config: XLNetConfig | None = None, **kwargs
) -> XLNetPretrainer:
    """Loads the pre-training model of a model directory with its trained weights.

    The recurrent memory is not restored; it starts empty. Auxiliary objectives that the saved
    model has not learned start anew.

    Args:
      model_dir: the model directory.
      config: a configuration with the same architecture; by default, the directory's.
      **kwargs: further arguments of `XLNetPretrainer`.

    Returns:
      The pre-training model.

    Raises:
      ConfigError: the configuration is missing or invalid, or the architectures differ.
      DataError: the checkpoint is missing or damaged.
    """
    saved = load_config(model_dir)
    config = config or saved
    check_compatible(config, model_dir)
    model = XLNetPretrainer(config, **kwargs)
    parts = {"encoder": model.encoder, "lm_head": model.lm_head}
    learned = {stage.name for stage in saved.objective.stages()}
    kept = {name: part for name, part in model.auxiliary.parts.items() if name in learned}
    parts |= {name: kept.pop(name) for name in model.auxiliary.apart if name in kept}
    if kept:
        parts["auxiliary"] = tf.train.Checkpoint(**kept)
    restore(model_dir, **parts)
    return model


@public()
def save_pretrained(
    model: Encoder | XLNetPretrainer | XLNetTaskModel | XLNetClassifier,
    model_dir: OutputDirectory,
    tokenizer: Tokenizer | AnyPath | None = None,
    labels: Sequence[str] = (),
    text_columns: Sequence[str] = (),
    task: str = "",
) -> None:
    """Writes a model as a model directory: configuration, vocabulary and weights.

    `load_encoder`, `load_pretrainer` and the commands read it. It holds no optimizer: a run
    starts from it with `--init_from`. Saving to the same directory again replaces the model, which
    an error while writing leaves as it was.

    Args:
      model: an encoder, a pre-training model, a model of a task or an `XLNetClassifier`.
      model_dir: the directory or its URL; made if it is not there.
      tokenizer: the model's tokenizer, or its vocabulary file. None: its preprocessor's.
      labels: of an `XLNetClassifier`, the names of its classes in the order of the logits; default:
        the labels of its head, or "0", "1", … With one logit, the names of its classes
        no and yes.
      text_columns: of an `XLNetClassifier`, the names of its texts: one, or two for pairs; default:
        the columns of its head, or `text`.
      task: of an `XLNetClassifier`, `classification`, `multi_label` or `regression`; default: the
        task of its head, or `regression` with one logit and no labels, else `classification`.

    Raises:
      ConfigError: the tokenizer or the labels do not fit the model, or the directory belongs to a
        run.

    Example:
      >>> model.fit(data)
      >>> save_pretrained(model, "my_model", "data/spiece.model")
      >>> encoder = load_encoder("my_model")
    """
    if isinstance(model, XLNetClassifier):
        config = task_configuration(model, labels, text_columns, task)
    else:
        config = copy.deepcopy(model.config)
        options = {"labels": labels, "text_columns": text_columns, "task": task}
        for name, value in options.items():
            require_config(not value, name, "an XLNetClassifier", type(model).__name__)
    if tokenizer is None:
        preprocessor: Any = getattr(model, "preprocessor", None)
        expected = "the model's tokenizer, as the model has no preprocessor"
        require(preprocessor is not None, "tokenizer", expected, None)
        tokenizer = preprocessor.tokenizer.plain
    if isinstance(tokenizer, str):
        tokenizer = Tokenizer(tokenizer, config.data.lowercase, config.data.keep_accents)
    config.model.fit_vocabulary(tokenizer.vocab_size, tokenizer.model_file)
    for key in TEXT_SETTINGS:
        expected, got = getattr(config.data, key), getattr(tokenizer, key)
        require_config(
            got == expected, "tokenizer", f"{key} {expected}, as data.{key} of the model", got
        )
    require_config(
        not recorded_steps(model_dir),
        model_dir,
        "a directory for this model alone",
        "the directory of a run, whose checkpoints would be lost; choose another one",
    )
    names = [name for name in PARTS if getattr(model, name, None) is not None]
    parts = {name: getattr(model, name) for name in names} or {"encoder": model}
    if "auxiliary" in parts:
        parts |= model.auxiliary.apart
    if isinstance(model, XLNetClassifier) and model.num_classes < len(config.task.labels):
        parts["head"] = sigmoid_head(model)
    checkpoint = tf.train.Checkpoint(model=tf.train.Checkpoint(**parts))
    os.makedirs(model_dir, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".", suffix=".tmp", dir=model_dir) as new:
        create_model_dir(new, config, tokenizer.model_file)
        with plain_folder(new) as folder, merged_weights(model):
            checkpoint.save(os.path.join(folder, "ckpt"))
        with contextlib.suppress(FileNotFoundError):
            os.remove(os.path.join(model_dir, _STATE))  # A kill leaves no model, not a mixture.
        for name in sorted(os.listdir(new), key=_STATE.__eq__):
            os.replace(os.path.join(new, name), os.path.join(model_dir, name))


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
        source = opened if opened.form == "xlnet" else Weights(opened, "xlnet")
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

    Args:
      path: path prefix of the checkpoint.
      state: what the checkpoint holds, with its `optimizer`, built. A `LossScaleOptimizer` keeps
        its scale if the checkpoint, of a run in another precision, has none.

    Raises:
      DataError: the checkpoint is damaged or of another model.
    """
    was_scaled = any(
        name.startswith("optimizer/loss_scale/") for name in CheckpointFile(path).shapes
    )
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
    if source is None or source.form != "tf1":
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
