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
from official.xlnet.modeling.ops.keras import keras, require_no_other_keras, with_name

_ACCURACIES = ("accuracy", "acc", "binary_accuracy")
_CROSS_ENTROPIES = ("crossentropy", "ce")
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
        kwargs = with_name(kwargs, "xlnet_classifier")
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
        losses = [_resolved(loss, keras.losses) for loss in tf.nest.flatten(loss)]
        for measure in filter(_reads_probabilities, losses):
            name = getattr(measure, "name", None) or getattr(measure, "__name__", measure)
            raise ConfigError(
                f"loss: expected one of logits, with from_logits=True, got {name!r} of "
                "probabilities"
            )
        names = [getattr(loss, "name", getattr(loss, "__name__", "")) for loss in losses]
        is_binary = self.num_classes == 1 or any(name.startswith("binary") for name in names)
        ambiguous = _ACCURACIES * is_binary + _CROSS_ENTROPIES  # Resolved by Keras in a step.
        for metric in tf.nest.flatten([metrics, kwargs.get("weighted_metrics")]):
            if metric in ambiguous or _reads_probabilities(_resolved(metric, keras.metrics)):
                raise ConfigError(
                    f"metrics: expected metrics of logits, e.g. {keras.__name__}.metrics."
                    "BinaryCrossentropy(from_logits=True) or BinaryAccuracy(threshold=0.0), as "
                    f"probabilities above a half are logits above 0, got {metric!r}"
                )
        super().compile(
            optimizer=optimizer, loss=loss, metrics=metrics, loss_weights=loss_weights, **kwargs
        )

    def _label_rule(self):
        from official.xlnet.modeling.models.checked_labels import rule_of_loss

        losses = tf.nest.flatten(getattr(self, "loss", None))
        if len(losses) != 1:
            return None
        loss, names = _resolved(losses[0], keras.losses), tuple(self.config.task.labels)
        return rule_of_loss(loss, self.num_classes, names)

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

    def _export_signature(self) -> Any:
        if self.preprocessor is None:
            return tf.TensorSpec([None, None], tf.int32, name="token_ids")
        names = self.preprocessor.task.text_columns
        columns = tuple(tf.TensorSpec([None], tf.string, name=name) for name in names or ["text"])
        return columns if len(columns) > 1 else columns[0]

    def get_config(self) -> dict[str, Any]:
        serialize = keras.saving.serialize_keras_object
        return {
            "name": self.name,
            "num_classes": None if self.config.task.name else self.num_classes,
            "encoder": serialize(self.encoder),
            "preprocessor": serialize(self.preprocessor),
        }

    @classmethod
    def from_config(cls, config, custom_objects=None):
        config = dict(config)
        for part in ("encoder", "preprocessor"):
            if part in config:
                config[part] = keras.saving.deserialize_keras_object(config[part])
        return cls(**config)


def _resolved(measure: Any, module: Any) -> Any:
    """A loss or metric by its name in Keras; others as they are."""
    return module.get(measure) if isinstance(measure, str) else measure


def _reads_probabilities(measure: Any) -> bool:
    """Whether a loss or metric expects numbers from 0 to 1: by `from_logits` and its thresholds."""
    if isinstance(measure, keras.losses.KLDivergence | keras.metrics.KLDivergence):
        return True
    if not isinstance(measure, keras.losses.Loss | keras.metrics.Metric):
        if not callable(measure):
            return False  # None, or a name that Keras refuses in the first step.
        parameter = inspect.signature(measure).parameters.get("from_logits")
        is_default = parameter is not None and parameter.default is False
        return is_default or measure in (keras.losses.kl_divergence, keras.metrics.binary_accuracy)
    settings = measure.get_config()
    thresholds = settings.get("thresholds", settings.get("threshold", 0.0))
    if thresholds is None and "thresholds" in settings and settings.get("top_k") is None:
        thresholds = 0.5  # The default of Keras, except of the best k.
    # The thresholds of AUC and the like, `num_thresholds`, are from 0 to 1 without `from_logits`.
    return not settings.get("from_logits", "num_thresholds" not in settings) or any(
        threshold is not None and 0 < threshold < 1 for threshold in tf.nest.flatten(thresholds)
    )
