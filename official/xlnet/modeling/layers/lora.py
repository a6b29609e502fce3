"""LoRA (Hu et al., 2021): low-rank adapters beside frozen kernels.

With W [I, O] frozen, x·W becomes

    x·W + s·(x·L)·R,   L [I, r], R [r, O], s = α / r

R starts at 0, so that a model with new adapters is the model without them. α = 2 r by default.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import re
import types
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from official.xlnet.configs.validation import require
from official.xlnet.modeling.kernels.stateless_dropout import dropout_seed_of_call
from official.xlnet.modeling.layers.adapted_kernel import AdaptedKernel, adapter_dropout
from official.xlnet.modeling.ops.frozen_variables import FrozenVariables
from official.xlnet.modeling.ops.keras import Layer, keras

SCALE = 2.0  # s, unless alpha is given.

# Attributes of the layers of blocks: queries, keys, values, output, feed-forward; and of Keras.
_KERNELS = (
    "query_kernel",
    "key_kernel",
    "value_kernel",
    "output_kernel",
    "inner_kernel",
    "outer_kernel",
    "kernel",
)


@dataclasses.dataclass(frozen=True)
class LoraSettings:
    """Settings of adapters, with the meanings of PEFT's `LoraConfig`.

    Attributes:
      rank: r.
      alpha: α; None for 2 r.
      dropout: dropout rate of the inputs of adapters.
      targets: the kernels that get adapters; see `add_lora`. None for all.
    """

    rank: int
    alpha: float | None = None
    dropout: float = 0.0
    targets: str | Sequence[str] | None = None

    @property
    def scale(self) -> float:
        """S = α / r."""
        return SCALE if self.alpha is None else self.alpha / self.rank

    def options(self) -> dict[str, Any]:
        """The settings except the rank, without defaults: arguments of `add_lora`."""
        options: dict[str, Any] = {}
        if self.alpha is not None:
            options["alpha"] = self.alpha
        if self.dropout:
            options["dropout"] = self.dropout
        if self.targets is not None:
            is_pattern = isinstance(self.targets, str)
            options["targets"] = self.targets if is_pattern else list(self.targets)
        return options


@dataclasses.dataclass(frozen=True)
class Place:
    """Attribute of a layer that is, or can be, an adapted kernel.

    Attributes:
      layer: the layer.
      attribute: name of the attribute.
      kernel: its kernel W.
      path: names of the block, the layer and the kernel, e.g. `layer_0/attention/query`.
    """

    layer: keras.layers.Layer
    attribute: str
    kernel: Any
    path: str

    @property
    def matrix_shape(self) -> tuple[int, int]:
        """Numbers of rows and columns of W as a matrix."""
        shape = list(self.kernel.shape)
        splits = [(math.prod(shape[:n]), math.prod(shape[n:])) for n in range(1, len(shape))]
        return min(splits, key=sum)

    def is_target(self, targets: str | Sequence[str] | None) -> bool:
        """Whether `targets` select this kernel; see `add_lora`."""
        if targets is None:
            return True
        if isinstance(targets, str):
            return re.fullmatch(targets, self.path) is not None
        return any(self.is_named(target) for target in targets)

    def is_named(self, target: str) -> bool:
        """Whether the path of this kernel is, or ends with, a name."""
        return f"/{self.path}".endswith(f"/{target.removesuffix('_kernel')}")

    def replace(self, value: Any) -> None:
        """Replaces the attribute in a way that Keras still saves the variable."""
        object.__setattr__(self.layer, self.attribute, value)


def _places(block: keras.layers.Layer) -> list[Place]:
    """The kernels of a block that can get adapters."""
    places = []
    for layer in block._flatten_layers():
        names = [block.name.rpartition("/")[2]]
        if layer is not block:
            names.append(layer.name.rpartition("/")[2])
        for attribute in _KERNELS:
            kernel = getattr(layer, attribute, None)
            if kernel is not None:
                path = "/".join([*names, attribute.removesuffix("_kernel")])
                places.append(Place(layer, attribute, kernel, path))
    return places


def _selected(
    blocks: list[keras.layers.Layer], settings: LoraSettings
) -> list[tuple[keras.layers.Layer, list[Place]]]:
    """The kernels that get adapters, by block; refuses settings that fit no kernel."""
    targets, rank = settings.targets, settings.rank
    candidates = {block: _places(block) for block in blocks}
    places = [place for block in blocks for place in candidates[block]]
    names = ", ".join(dict.fromkeys(place.path.partition("/")[2] for place in places))
    expected = f"names of kernels ({names}) or a regular expression of their paths"
    if targets is not None and not isinstance(targets, str):
        for target in targets:
            require(any(place.is_named(target) for place in places), "targets", expected, target)
    selected = [place for place in places if place.is_target(targets)]
    require(bool(selected), "targets", expected, targets)
    for place in selected:
        smaller = min(place.matrix_shape)
        expected = f"at most {smaller}, the smaller side of {place.path} {list(place.matrix_shape)}"
        require(rank <= smaller, "rank", expected, rank)
    chosen = {id(place) for place in selected}
    kept = {block: [x for x in candidates[block] if id(x) in chosen] for block in blocks}
    return [(block, block_places) for block, block_places in kept.items() if block_places]


class Lora(Layer):
    """The adapters of blocks: for each a layer with the factors of its kernels.

    Args:
      blocks: the built blocks; frozen ones get no adapters.
      rank: r.
      alpha: see `add_lora`.
      dropout: see `add_lora`.
      targets: see `add_lora`.
    """

    def __init__(
        self,
        blocks: Iterable[keras.layers.Layer],
        rank: int,
        alpha: float | None = None,
        dropout: float = 0.0,
        targets: str | Sequence[str] | None = None,
        **kwargs,
    ):
        super().__init__(name="lora", **kwargs)
        settings = LoraSettings(rank, alpha, dropout, targets)
        trainable = [block for block in dict.fromkeys(blocks) if block.trainable]
        require(bool(trainable), "blocks", "trainable ones, which get adapters", "none")
        adapted: list[tuple[Place, AdaptedKernel]] = []
        drops: list[keras.layers.Layer] = []
        for block, places in _selected(trainable, settings):
            part = Layer(name=block.name, dtype=self.dtype_policy)
            setattr(self, block.name.rpartition("/")[2], part)
            with tf.name_scope(block.name):
                for place in places:
                    left, right = _factors(place, rank, part)
                    kernel = AdaptedKernel(place.kernel, left, right, settings.scale, dropout)
                    place.replace(kernel)
                    adapted.append((place, kernel))
            if dropout:
                drops.append(block)
                block.call = _call_with_dropout(block.call)
        # In a plain object: not parts of this layer.
        self._hidden = types.SimpleNamespace(
            settings=settings, adapted=adapted, drops=drops, frozen=FrozenVariables()
        )

    @property
    def settings(self) -> LoraSettings:
        """The settings of the adapters."""
        return self._hidden.settings

    @property
    def rank(self) -> int:
        """Rank of the adapters, r."""
        return self.settings.rank

    @property
    def kernels(self) -> dict[str, AdaptedKernel]:
        """The adapted kernels, by their path, e.g. `layer_0/attention/query`."""
        return {place.path: kernel for place, kernel in self._hidden.adapted}

    def freeze(self, layers: Iterable[keras.layers.Layer]) -> None:
        """Freezes the variables of layers until the adapters are merged.

        `trainable` of these layers, or of layers around them, has no effect until then.

        Args:
          layers: the layers, of which the parts of the adapters are left out.
        """
        parts = {id(part) for part in self._flatten_layers()}
        self._hidden.frozen.freeze([layer for layer in layers if id(layer) not in parts])

    def add(self) -> list[tuple[tf.Variable, np.ndarray]]:
        """Adds the adapters to the kernels; returns these, with their former values."""
        kernels = []
        for _, adapted in self._hidden.adapted:
            kernels.append((adapted.kernel, adapted.kernel.numpy()))
            adapted.kernel.assign(adapted.merged())
        return kernels

    def merge(self) -> None:
        """Adds the adapters to the kernels, whose places they leave.

        Graphs that were traced before compute the same, as R is 0 now.
        """
        self.add()
        for place, adapted in self._hidden.adapted:
            adapted.right.assign(tf.zeros_like(adapted.right))
            place.replace(adapted.kernel)
        for block in self._hidden.drops:
            del block.call  # The method of its class is left.
        self._hidden.frozen.release()


def _factors(place: Place, rank: int, part: keras.layers.Layer) -> tuple[Any, Any]:
    """Creates L and R of a kernel, variables of `part`."""
    num_rows, num_columns = place.matrix_shape
    name = f"{place.layer.name}_{place.attribute}"
    left = part.add_weight(
        name=f"{name}_left",
        shape=[num_rows, rank],
        initializer=keras.initializers.VarianceScaling(1 / 3, "fan_in", "uniform"),
    )
    right = part.add_weight(name=f"{name}_right", shape=[rank, num_columns], initializer="zeros")
    return left, right


def _call_with_dropout(call: Any) -> Any:
    """The `call` of a block whose adapters drop their inputs in training."""

    @functools.wraps(call)
    def with_dropout(*args, **kwargs):
        seed = dropout_seed_of_call(kwargs.get("training"), kwargs.get("dropout_seed"))
        with adapter_dropout(seed):
            return call(*args, **kwargs)

    return with_dropout
