"""Data of `fit`, `evaluate` and `predict`, checked: arrays, data sets, generators, sequences."""

from __future__ import annotations

import collections.abc
import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from official.xlnet.errors import require_config, require_data
from official.xlnet.modeling.networks.encoder_inputs import require_known
from official.xlnet.modeling.ops.keras import IS_KERAS_3, keras

if TYPE_CHECKING:
    from official.xlnet.modeling.heads.label_rule import LabelRule


@dataclasses.dataclass(frozen=True)
class DataChecks:
    """Converts and checks data in each form that Keras takes.

    Attributes:
      vocab_size: number of token ids.
      label_rule: which labels the loss takes; None for any.
      label_name: name of the label among the features; None if it is apart.
    """

    vocab_size: int
    label_rule: LabelRule | None = None
    label_name: str | None = None

    def source(self, data: Any) -> Any:
        """Returns inputs, or a source of batches of (inputs, labels, weights), checked.

        Raises:
          DataError: token ids or labels are out of range. A data set raises TensorFlow's
            `InvalidArgumentError` with the same sentence when it is read.
        """
        if isinstance(data, tf.data.Dataset):
            self._check_form(data.element_spec)
            return data.map(self._checked)
        if isinstance(data, tf.distribute.DistributedDataset):
            return data  # It has no `map`.
        if isinstance(data, keras.utils.Sequence):
            return CheckedSequence(data, self)
        if isinstance(data, collections.abc.Iterator) and not isinstance(data, tf.data.Iterator):
            return (self.batch(batch) for batch in data)
        return self._checked(_as_arrays(data, "inputs"))

    def labels(self, y: Any, weights: Any = None) -> Any:
        """Returns labels beside inputs as arrays, checked; see `weights`."""
        y = _as_arrays(y, "labels")
        self._check_labels(None, y, weights)
        return y

    def weights(self, weights: Any) -> Any:
        """Returns weights of rows as arrays."""
        return _as_arrays(weights, "sample_weight")

    def arrays(self, data: Any) -> Any:
        """Returns (inputs, labels, weights), or inputs alone, as arrays, checked."""
        if not isinstance(data, tuple):
            return self.source(data)
        x, *rest = data
        forms = [_as_arrays(x, "inputs")]
        names = ("labels", "sample_weight")
        forms += [_as_arrays(y, name) for y, name in zip(rest, names, strict=False)]
        return self._checked(*forms) if rest else (self._checked(*forms),)

    def batch(self, batch: Any) -> Any:
        """Returns a batch of a generator or sequence as arrays, checked."""
        batch = tuple(batch) if isinstance(batch, list) else batch  # As Keras does.
        return self.arrays(batch) if isinstance(batch, tuple) else self.source(batch)

    def num_rows(self, data: Any) -> int | None:
        """Number of rows of arrays; None of other data, and if it is unknown."""
        leaves = list(tf.nest.flatten(data))
        shape = getattr(leaves[0], "shape", None) if leaves else None
        return shape[0] if shape is not None and len(shape) else None

    def require_rows(self, data: Any) -> None:
        """Raises `DataError` for arrays without rows, which Keras cannot train or evaluate on."""
        require_data(self.num_rows(data) != 0, "inputs", "at least one row", "none")

    def _checked(self, x: Any, *rest: Any) -> Any:
        """Checks a batch, or a whole array; in a graph, it adds assertions."""
        ids = _ids(x)
        if ids is not None:
            _require_axes(ids)
            values = ids.flat_values if isinstance(ids, tf.RaggedTensor) else ids
            require_known(values, self.vocab_size)
        self._check_labels(x, *rest[:2])
        return (x, *rest) if rest else x

    def _check_labels(self, x: Any, y: Any = None, weights: Any = None) -> None:
        _require_one_weight(weights)
        if self.label_name is not None and isinstance(x, dict):
            _require_one_weight(x.get("weight"))
        labels = self._labels_in(x, y)
        if labels is not None and self.label_rule is not None:
            self.label_rule.check(labels, weights)

    def _check_form(self, spec: Any) -> None:
        """Raises `DataError` if ids or labels of a data set have the wrong type or shape."""
        x, y = spec[:2] if isinstance(spec, tuple) and len(spec) > 1 else (spec, None)
        ids = _ids(x)
        if ids is not None:
            _require_axes(ids)
        labels = self._labels_in(x, y)
        if labels is not None and self.label_rule is not None:
            self.label_rule.check_form(labels)

    def _labels_in(self, x: Any, y: Any) -> Any:
        if self.label_name is None or y is not None:
            return y.get(self.label_name) if isinstance(y, dict) else y
        return x.get(self.label_name) if isinstance(x, dict) else None


def require_labels(x: Any, y: Any, options: Mapping[str, Any]) -> None:
    """Raises `ConfigError` for weights without labels, which Keras ignores or misreports.

    Args:
      x: inputs, or a source of batches.
      y: labels; None without any.
      options: other arguments of `fit`, by name.
    """
    has_features_alone = isinstance(getattr(x, "element_spec", x), dict | tf.TensorSpec | tf.Tensor)
    for name in ("class_weight", "sample_weight"):
        require_config(
            options.get(name) is None or y is not None or not has_features_alone,
            name,
            "labels beside the inputs, as fit(x, y) or a data set of (x, y) has them",
            "features alone",
        )


def _ids(x: Any) -> Any:
    """The token ids, or their spec, of inputs; None of texts and of other inputs."""
    ids = x.get("token_ids") if isinstance(x, dict) else x
    kinds = np.ndarray | tf.Tensor | tf.RaggedTensor | tf.TensorSpec
    return ids if isinstance(ids, kinds) and tf.as_dtype(ids.dtype).is_integer else None


def _require_axes(ids: Any) -> None:
    """Raises `DataError` for token ids of one axis."""
    rank = tf.TensorShape(ids.shape).rank
    require_data(
        rank is None or rank > 1,
        "token_ids",
        "the shape [rows, tokens]",
        f"{tuple(ids.shape)}: a row alone needs an axis, token_ids[None], and a data set .batch(…)",
    )


def _require_one_weight(weights: Any) -> None:
    """Raises `DataError` for weights of other shapes than [rows] and [rows, 1]."""
    shape = tf.TensorShape(getattr(weights, "shape", None))
    has_one = shape.rank in (None, 0, 1) or (shape.rank == 2 and shape[1] in (1, None))
    require_data(has_one, "sample_weight", "one for each row", f"the shape {shape}")


class CheckedSequence(keras.utils.Sequence):
    """A `keras.utils.PyDataset` (tf_keras: `Sequence`) whose batches are converted and checked.

    Args:
      source: the sequence.
      checks: how.
    """

    def __init__(self, source: Any, checks: DataChecks):
        if IS_KERAS_3:
            super().__init__(source.workers, source.use_multiprocessing, source.max_queue_size)
        self._source, self._checks = source, checks

    def __getitem__(self, index: int) -> Any:
        batch = self._checks.batch(self._source[index])
        if getattr(self._source, "use_multiprocessing", False):
            from official.xlnet.modeling.models.user_arrays import require_one_length_in_workers

            is_ragged = any(isinstance(x, tf.RaggedTensor) for x in tf.nest.flatten(batch))
            require_one_length_in_workers(is_worker=is_ragged)
        return batch

    def __len__(self) -> int:
        return len(self._source)

    @property
    def num_batches(self) -> int | None:
        """Number of batches; None without end."""
        return self._source.num_batches

    def on_epoch_begin(self) -> None:
        """Tells the sequence that an epoch begins, as Keras 3 does."""
        self._source.on_epoch_begin()

    def on_epoch_end(self) -> None:
        """Tells the sequence that an epoch has ended."""
        self._source.on_epoch_end()


def _as_arrays(data: Any, name: str) -> Any:
    """Arrays of what a user gave; runs of the command line give data sets only."""
    if data is None:
        return None
    from official.xlnet.modeling.models.user_arrays import as_arrays

    return as_arrays(data, name)
