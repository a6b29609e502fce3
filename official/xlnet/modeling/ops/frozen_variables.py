"""Variables that stay frozen until they are released, whichever layers are switched.

Keras asks each layer for its trainable variables, and `layer.trainable = True` switches all layers
below. A variable in a layer's list of non-trainable variables is trained in neither case.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from official.xlnet.modeling.ops.keras import IS_KERAS_3, keras

_TRAINABLE = "trainable_variables" if IS_KERAS_3 else "trainable_weights"
_NON_TRAINABLE = f"non_{_TRAINABLE}"


@dataclasses.dataclass(frozen=True)
class FrozenVariables:
    """Variables of layers, moved from the list of trainable to the list of non-trainable ones.

    The order of all variables of a layer, which files of Keras keep, stays the same.

    Attributes:
      variables: each layer, with the variables that were moved.
    """

    variables: list[tuple[keras.layers.Layer, list[Any]]] = dataclasses.field(default_factory=list)

    def freeze(self, layers: Iterable[keras.layers.Layer]) -> None:
        """Freezes the variables of layers, without the layers inside them."""
        for layer in layers:
            trainable = getattr(layer, f"_{_TRAINABLE}")
            moved = list(trainable)
            if not moved:
                continue
            trainable.clear()
            getattr(layer, f"_{_NON_TRAINABLE}")[:0] = moved
            _update_variables(layer, moved, _TRAINABLE, _NON_TRAINABLE, is_trainable=False)
            self.variables.append((layer, moved))

    def release(self) -> None:
        """Moves the variables back; they are trained again in layers that are trainable."""
        for layer, moved in self.variables:
            moved_ids = {id(variable) for variable in moved}
            non_trainable = getattr(layer, f"_{_NON_TRAINABLE}")
            non_trainable[:] = [x for x in non_trainable if id(x) not in moved_ids]
            getattr(layer, f"_{_TRAINABLE}")[:0] = moved
            _update_variables(layer, moved, _NON_TRAINABLE, _TRAINABLE, layer.trainable)
        self.variables.clear()


def _update_variables(
    layer: keras.layers.Layer, moved: list[Any], source: str, target: str, is_trainable: bool
) -> None:
    """Tells variables of Keras 3, and the tracker of their layer, where they are."""
    if not IS_KERAS_3:
        return
    for variable in moved:
        variable.trainable = is_trainable
        layer._tracker.stored_ids[source].discard(id(variable))
        layer._tracker.stored_ids[target].add(id(variable))
