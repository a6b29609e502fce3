"""What files of Keras (`.keras`, `.weights.h5`) hold beside the variables of a layer."""

from __future__ import annotations

from typing import Any

from official.xlnet.errors import ConfigError


def has_group(store: Any, name: str) -> bool:
    """Whether a file has variables of a part of a layer.

    Keras 3 tries a layer that was refused again under its other paths, if it has any, and reports
    the last error: where the file does not have the path, a part of any layer counts.

    Args:
      store: the argument of the layer's `load_own_variables`.
      name: the attribute of the part.
    """
    path = getattr(store, "_h5_entry_path", None)
    if path is not None:  # Of Keras 3.
        if path and path not in store.h5_file:
            return _is_anywhere(store.h5_file, name)
        part_path = f"{path}/{name}" if path else name
        if hasattr(store, "has_path"):
            return store.has_path(part_path)
        return part_path in store.h5_file
    variables_group = getattr(store, "_h5_entry_group", store)
    layer_group = getattr(variables_group, "parent", None)
    return layer_group is not None and name in layer_group


def _is_anywhere(file: Any, name: str) -> bool:
    """Whether an HDF5 file has a group of a name."""
    return bool(file.visit(lambda path: path.rpartition("/")[2] == name or None))


def require_same_adapters(model_has_adapters: bool, file_has_adapters: bool) -> None:
    """Raises `ConfigError` for weights with adapters in a model without, or the other way round.

    Args:
      model_has_adapters: whether the model has adapters.
      file_has_adapters: whether the file has.
    """
    if file_has_adapters and not model_has_adapters:
        raise ConfigError(
            "weights: expected a model with adapters, as the weights were saved with them, got one "
            "without: call `add_lora` with the same arguments before the weights are loaded, or "
            "`merge_lora` before they are saved"
        )
    if model_has_adapters and not file_has_adapters:
        raise ConfigError(
            "weights: expected the adapters of the model, got weights that were saved without: "
            "load them before `add_lora` is called"
        )
