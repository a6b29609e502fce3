"""What files of Keras (`.keras`, `.weights.h5`) hold beside the variables of a layer."""

from __future__ import annotations

from typing import Any

from official.xlnet.errors import ConfigError
from official.xlnet.modeling.ops.keras import IS_KERAS_3, keras

# Arguments of the optimizers of tf_keras that those of Keras 3 do not have.
_OF_KERAS_2_ALONE = ("jit_compile", "is_legacy_optimizer")


def arguments_of_compile(compile_config: dict[str, Any]) -> dict[str, Any]:
    """Returns the optimizer, loss, metrics and other arguments that a file has for `compile`.

    Args:
      compile_config: the arguments, with optimizer, loss and metrics as their configurations.

    Raises:
      ConfigError: the optimizer, loss or metrics cannot be read, e.g. are of the other Keras.
    """
    try:
        return keras.saving.deserialize_keras_object(_as_of_this_keras(compile_config))
    except (TypeError, ValueError) as error:
        require_no_keras_3(_is_compiled_by_keras_3(compile_config))
        raise ConfigError(
            f"expected an optimizer, loss and metrics of {keras.__name__}, got others in the file, "
            "maybe of the other Keras: load it with compile=False, and compile again"
        ) from error


def _as_of_this_keras(compile_config: dict[str, Any]) -> dict[str, Any]:
    """Arguments of `compile` in a file, which may be of tf_keras, as Keras 3 takes them.

    tf_keras writes None for defaults, and an optimizer with arguments that Keras 3 refuses.
    """
    if not IS_KERAS_3:
        return compile_config
    arguments = {name: value for name, value in compile_config.items() if value is not None}
    optimizer = arguments.get("optimizer")
    if isinstance(optimizer, dict) and isinstance(optimizer.get("config"), dict):
        settings = dict(optimizer["config"])
        for name in _OF_KERAS_2_ALONE:
            settings.pop(name, None)
        arguments["optimizer"] = {**optimizer, "config": settings}
    return arguments


def require_no_keras_3(is_of_keras_3: bool) -> None:
    """Raises `ConfigError` for a file of Keras 3 if the models are of tf_keras.

    Args:
      is_of_keras_3: whether a file of Keras is of Keras 3.
    """
    if is_of_keras_3 and not IS_KERAS_3:
        raise ConfigError(
            "file: expected one of tf_keras, which this process uses, got one of Keras 3 or of "
            "another model: load it where TF_USE_LEGACY_KERAS is not set; a model directory of "
            "`save_pretrained` is read by both"
        )


def is_config_of_keras_3(config: dict[str, Any]) -> bool:
    """Whether a layer's configuration was written by Keras 3, as its precision policy says."""
    policy = config.get("dtype")
    return isinstance(policy, dict) and policy.get("class_name") == "DTypePolicy"


def _is_compiled_by_keras_3(compile_config: dict[str, Any]) -> bool:
    """Whether arguments of `compile` in a file were written by Keras 3, as its optimizer says."""
    optimizer = compile_config.get("optimizer")
    settings = optimizer.get("config") if isinstance(optimizer, dict) else None
    return isinstance(settings, dict) and not set(_OF_KERAS_2_ALONE) & settings.keys()


def is_file_of_keras_3(store: Any) -> bool:
    """Whether a model's variables were written by Keras 3.

    tf_keras names the group of an encoder in a model by its place among `layers`, Keras 3 by its
    attribute.

    Args:
      store: the argument of the model's `load_own_variables`.
    """
    return "encoder" in (getattr(store, "parent", None) or ())


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
