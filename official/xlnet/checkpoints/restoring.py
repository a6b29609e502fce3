"""Loading the weights of a trained model, in any format, into the built parts of a model."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from official.xlnet.checkpoints.any_format import load_config
from official.xlnet.checkpoints.source import UNTIED, Source, open_source
from official.xlnet.configs.experiment import CONFIG_FILE
from official.xlnet.configs.registry import NETWORKS
from official.xlnet.errors import DataError, require_data
from official.xlnet.files.arguments import AnyPath
from official.xlnet.files.public import public
from official.xlnet.files.urls import local_copy
from official.xlnet.modeling.networks import Encoder
from official.xlnet.modeling.ops.keras import Variable
from official.xlnet.runtime.host import host_state_kept

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
