"""`add_lora` and `merge_lora`: a model that is trained by low-rank adapters alone."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from official.xlnet.configs.validation import (
    AT_LEAST_1,
    POSITIVE,
    RATE,
    require,
    require_number,
    require_type,
)
from official.xlnet.modeling.layers.lora import Lora
from official.xlnet.modeling.networks.encoder import Encoder
from official.xlnet.modeling.ops.initializers import build_layers
from official.xlnet.modeling.ops.keras import keras


def add_lora(
    model: Encoder | keras.Model,
    rank: int = 8,
    alpha: float | None = None,
    dropout: float = 0.0,
    targets: str | Sequence[str] | None = None,
) -> Lora:
    """Adds low-rank adapters (LoRA) to a model, and freezes all of it except these and its head.

    The kernels of queries, keys, values, output and feed-forward get adapters:

        x·W + (alpha / rank)·(dropout(x)·L)·R,   L [I, rank], R [rank, O]

    R starts at 0, so that the outputs stay the same. Frozen blocks get no adapters. Compile the
    model afterwards. Learning rates are about ten times those of full fine-tuning. Until
    `merge_lora`, setting `trainable` of the model or of a layer trains no other weights.

    Args:
      model: any model of this package: an encoder, a classifier, the model of a task, or a
        pre-training model; it is built if it is not yet. Of a model of your own, its encoder,
        before the model is built around it.
      rank: rank of the adapters, at most the smaller side of each kernel.
      alpha: numerator of the scale of the adapters, α; PEFT's `lora_alpha`. Default: 2·rank.
      dropout: dropout rate of the inputs of the adapters in training; PEFT's `lora_dropout`.
      targets: the kernels that get adapters, as PEFT's `target_modules`: their names, `query`,
        `key`, `value`, `output` (attention), `inner`, `outer` (feed-forward), or the ends of their
        paths, e.g. `layer_0/attention/query`; or a regular expression that matches whole paths.
        Default: all.

    Returns:
      The adapters, a Keras layer. `tf.train.Checkpoint(lora=adapters)` saves them alone, and
      `save_adapters` in the files of PEFT.

    Raises:
      ConfigError: the model has adapters or no blocks to adapt, or an argument is out of range.

    Example:
      >>> model = load_model("xlnet-base-cased", num_classes=2)
      >>> adapters = add_lora(model, rank=8)
      >>> model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
      >>> model.fit(["A fine film.", "Dull."], tf.constant([1, 0]))
      >>> tf.train.Checkpoint(lora=adapters, head=model.head).write("film")
      >>> merge_lora(model)
      >>> save_pretrained(model, "runs/film")
    """
    encoder: Any = getattr(model, "encoder", model)
    require_type("model", encoder, Encoder)
    require_number("rank", rank, AT_LEAST_1)
    if alpha is not None:
        require_number("alpha", alpha, POSITIVE, numbers.Real)
    require_number("dropout", dropout, RATE, numbers.Real)
    require(encoder.lora is None, "model", "a model without adapters", "one with them")
    if not encoder.built:
        build_layers(encoder)
    encoder.add_lora(rank, alpha=alpha, dropout=dropout, targets=targets)
    if hasattr(model, "lm_head"):
        encoder.lora.freeze(model.lm_head._flatten_layers())
    _forget_graphs(model)
    return encoder.lora


def merge_lora(model: Encoder | keras.Model) -> None:
    """Adds the adapters of `add_lora` to the kernels, and removes them.

    Outputs stay the same, up to rounding, and all weights can be trained again. Compile the model
    before it is trained further.

    Args:
      model: the model.

    Raises:
      ConfigError: the model has no adapters.
    """
    encoder: Any = getattr(model, "encoder", model)
    expected = "a model with adapters (`add_lora`)"
    require(getattr(encoder, "lora", None) is not None, "model", expected, model)
    encoder.without_lora().merge()
    encoder._update_views()
    _forget_graphs(model)


def _forget_graphs(model: tf.Module) -> None:
    """Has Keras make the graphs of a model anew, and ask for an optimizer of its variables."""
    if isinstance(model, keras.Model):
        model.train_function = model.test_function = model.predict_function = None
        model._is_compiled = model.compiled = False
