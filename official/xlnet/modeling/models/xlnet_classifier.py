"""Text classifier as a plain Keras model: texts or token ids in, logits out."""

from __future__ import annotations

import copy
import inspect
from typing import Any

import tensorflow as tf

from official.xlnet.configs.sections import HeadSections
from official.xlnet.configs.task import TaskConfig
from official.xlnet.configs.validation import (
    AT_LEAST_1,
    require_number,
    require_one_of,
    require_type,
)
from official.xlnet.errors import ConfigError
from official.xlnet.modeling.heads import create_head
from official.xlnet.modeling.heads.summary_head import SummaryHead
from official.xlnet.modeling.models.xlnet_task_model import EncoderWithHead
from official.xlnet.modeling.networks import Encoder
from official.xlnet.modeling.ops.keras import keras, require_no_other_keras

_ACCURACIES = ("accuracy", "acc", "binary_accuracy")
TASKS = ("classification", "multi_label", "regression")


@keras.utils.register_keras_serializable(package="xlnet")
class XLNetClassifier(EncoderWithHead):
    """XLNet encoder, sequence summary and a dense layer: logits = W · summary + b.

    A plain Keras model: `compile` takes any optimizer, loss of logits and metrics; `fit`,
    `evaluate`, `predict` and `save` work as for any other model. With `num_classes=1` it is a model
    for regression or for one probability. `load_model` makes it from a folder.

    Args:
      encoder: the encoder; it is trained too, unless `encoder.trainable` is False.
      num_classes: number of logits of a new head, C. None: the head of the encoder's task,
        `classification`, `multi_label` or `regression`; its numbers are in the units of the labels.
      preprocessor: turns texts into inputs, a `Preprocessor`. None: inputs are token ids.

    Call arguments:
      inputs: with a preprocessor, texts: strings [B], or a tuple or dictionary of them. Or the
        inputs that a call of `Tokenizer` or of the preprocessor returns: a dictionary of
        `token_ids` int32 [B, T], `segment_ids` int32 [B, T] and `is_padding` bool [B, T]. Or its
        `token_ids` alone, which the other two follow from. Ragged ids are padded on the left.
      training: whether dropout is applied; in a frozen encoder it never is.

    Returns:
      Logits, float32 [B, C].

    Example:
      >>> tokenizer, encoder = load_tokenizer("runs/base"), load_encoder("runs/base")
      >>> model = XLNetClassifier(encoder, num_classes=2)
      >>> loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
      >>> model.compile(keras.optimizers.Adam(3e-5), loss, ["accuracy"])
      >>> model.fit(tokenizer(["A fine film.", "Dull."]), tf.constant([1, 0]))
    """

    def __init__(
        self,
        encoder: Encoder,
        num_classes: int | None = None,
        preprocessor: keras.layers.Layer | None = None,
        **kwargs,
    ):
        kwargs.setdefault("name", "xlnet_classifier")
        super().__init__(**kwargs)
        require_type("encoder", encoder, Encoder)
        self.encoder, self.preprocessor = encoder, preprocessor
        self.config, task = copy.deepcopy(encoder.config), encoder.config.task
        if num_classes is None:
            require_one_of("encoder: task.name without num_classes", task.name, TASKS)
            self.head = create_head(HeadSections(encoder.model, task))
        else:
            require_number("num_classes", num_classes, AT_LEAST_1)
            task = TaskConfig(summary=task.summary, max_length=task.max_length)
            self.config.task = task
            self.head = SummaryHead(HeadSections(encoder.model, task), num_classes, name="head")
        self.num_classes = num_classes or max(1, len(task.labels))
        self.build(None)

    def compile(self, optimizer="rmsprop", loss=None, metrics=None, loss_weights=None, **kwargs):
        """As in Keras.

        Raises:
          ConfigError: the loss or a metric is one of probabilities, as cross-entropies are by
            default; accuracy with one logit, or with a binary cross-entropy, is that of
            probabilities above a half.
        """
        require_no_other_keras("compile", (loss, metrics))
        is_binary = self.num_classes == 1
        for one in tf.nest.flatten(loss):
            name = one if isinstance(one, str) else getattr(one, "name", "")
            is_binary |= name.startswith("binary")
            if _takes_probabilities(one):
                raise ConfigError(
                    "loss: expected one of logits, with from_logits=True, got "
                    f"{name or one!r} of probabilities"
                )
        for one in tf.nest.flatten([metrics, kwargs.get("weighted_metrics")]):
            if _measures_probabilities(one) or (is_binary and one in _ACCURACIES):
                raise ConfigError(
                    f"metrics: expected metrics of logits, e.g. {keras.__name__}.metrics."
                    "BinaryCrossentropy(from_logits=True) or BinaryAccuracy(threshold=0.0), as "
                    f"probabilities above a half are logits above 0, got {one!r}"
                )
        super().compile(
            optimizer=optimizer, loss=loss, metrics=metrics, loss_weights=loss_weights, **kwargs
        )

    def call(self, inputs: Any, training: bool | None = None, dropout_seed=None) -> tf.Tensor:
        first, *_ = tf.nest.flatten(inputs, expand_composites=True)
        if tf.convert_to_tensor(first).dtype == tf.string:
            if self.preprocessor is None:
                raise ConfigError(
                    "inputs: expected token ids, as the model has no preprocessor, got strings; "
                    "`load_model` makes a model with one"
                )
            inputs = self.preprocessor(inputs)
        return super().call(inputs, training, dropout_seed)["logits"]

    def get_config(self) -> dict[str, Any]:
        parts = {"encoder": self.encoder, "preprocessor": self.preprocessor}
        return {
            "name": self.name,
            "num_classes": None if self.config.task.name else self.num_classes,
            **{k: keras.saving.serialize_keras_object(part) for k, part in parts.items()},
        }

    @classmethod
    def from_config(cls, config, custom_objects=None):
        load = keras.saving.deserialize_keras_object
        parts = ("encoder", "preprocessor")
        return cls(**{k: load(x) if k in parts else x for k, x in config.items()})


def _measures_probabilities(metric: Any) -> bool:
    """Whether a metric is a cross-entropy of probabilities, or has thresholds from 0 to 1."""
    if isinstance(metric, str):
        if "crossentropy" in metric or metric == "ce":
            return True
        metric = keras.metrics.get(metric)
    if isinstance(metric, str):
        return False  # Keras does not know it, and says so in the first step.
    if not isinstance(metric, keras.metrics.Metric):
        return metric is keras.metrics.binary_accuracy or _takes_probabilities(metric)
    config = metric.get_config()
    # Those of AUC and the like, `num_thresholds`, are from 0 to 1 unless it is told of logits.
    takes_logits = config.get("from_logits", "num_thresholds" not in config)
    if not takes_logits or isinstance(metric, keras.metrics.KLDivergence):
        return True
    thresholds = tf.nest.flatten([config.get("thresholds", ()), config.get("threshold", ())])
    is_default = config.get("thresholds", 0) is None and config.get("top_k") is None
    return is_default or any(x is not None and 0 < x < 1 for x in thresholds)


def _takes_probabilities(loss: Any) -> bool:
    """Whether a loss, its name or its function has `from_logits`, and it is False."""
    if isinstance(loss, str):
        loss = keras.losses.get(loss)
    if loss is keras.losses.kl_divergence or isinstance(loss, keras.losses.KLDivergence):
        return True
    if isinstance(loss, keras.losses.Loss):
        return loss.get_config().get("from_logits") is False
    if not callable(loss):
        return False
    parameter = inspect.signature(loss).parameters.get("from_logits")
    return parameter is not None and parameter.default is False
