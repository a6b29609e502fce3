"""Low-rank adapters (LoRA) alone, in the files of PEFT: `save_adapters` and `load_adapters`."""

from __future__ import annotations

import os
import zlib
from typing import Any

import numpy as np
import safetensors.numpy
from absl import logging

from official.xlnet.checkpoints.convert.peft_format import (
    CHECKSUM,
    CONFIG_FILE,
    HEAD_PREFIX,
    NO_BIAS,
    OUR_PATH,
    PREFIX,
    THEIR_MATRIX,
    WEIGHTS_FILE,
    read_adapters,
)
from official.xlnet.configs.validation import require
from official.xlnet.errors import require_config
from official.xlnet.files.arguments import AnyPath, OutputDirectory
from official.xlnet.files.atomic import write_bytes
from official.xlnet.files.json_files import write_json
from official.xlnet.files.new_folder import files_together
from official.xlnet.files.public import public
from official.xlnet.files.urls import local_copy
from official.xlnet.modeling.layers.adapted_kernel import AdaptedKernel
from official.xlnet.modeling.layers.lora import Lora
from official.xlnet.modeling.models.lora import add_lora
from official.xlnet.modeling.models.xlnet_classifier import XLNetClassifier
from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
from official.xlnet.modeling.models.xlnet_task_model import XLNetTaskModel
from official.xlnet.modeling.networks import Encoder


@public()
def save_adapters(
    model: Encoder | XLNetPretrainer | XLNetTaskModel | XLNetClassifier,
    folder: OutputDirectory,
) -> None:
    """Writes the adapters of a model alone, in the files of PEFT.

    `load_adapters` reads them, and `peft.PeftModel.from_pretrained` onto the XLNet of transformers
    with the same weights (`xlnet convert`): onto `XLNetModel` if the model is an encoder, else onto
    a model with a head. The head is not saved.

    Args:
      model: a model with adapters (`add_lora`) of feed-forward kernels, `targets=["inner",
        "outer"]`.
      folder: where `adapter_model.safetensors` and `adapter_config.json` are written; made if it
        is not there. Adapters in it are replaced; a kill leaves none rather than a mixture.

    Raises:
      ConfigError: the model has no adapters, or adapters that PEFT cannot represent.

    Example:
      >>> add_lora(model, rank=8, targets=["inner", "outer"])
      >>> model.fit(data)
      >>> save_adapters(model, "film")
    """
    encoder: Any = getattr(model, "encoder", model)
    require(encoder.lora is not None, "model", "a model with adapters (`add_lora`)", "one without")
    prefix = PREFIX if encoder is model else HEAD_PREFIX
    tensors: dict[str, np.ndarray] = {}
    modules = []
    for path, kernel in encoder.lora.kernels.items():
        match = OUR_PATH.fullmatch(path)
        require_config(
            match is not None,
            "targets",
            "adapters of feed-forward kernels alone, add_lora(…, targets=['inner', 'outer']): PEFT "
            "has no low-rank adapters of transformers' attention projections; "
            "tf.train.Checkpoint(lora=…) saves any",
            path,
        )
        assert match is not None
        module = f"layer.{match[1]}.ff.{THEIR_MATRIX[match[2]]}"
        modules.append(module)
        tensors[f"{prefix}{module}.lora_A.weight"] = _transposed(kernel.left)
        tensors[f"{prefix}{module}.lora_B.weight"] = _transposed(kernel.right)
    settings = encoder.lora.settings
    config = {
        "base_model_name_or_path": None,
        "bias": NO_BIAS,
        "fan_in_fan_out": False,
        "inference_mode": True,
        "init_lora_weights": True,
        "lora_alpha": settings.scale * settings.rank,
        "lora_dropout": settings.dropout,
        "modules_to_save": None,
        "peft_type": "LORA",
        "r": settings.rank,
        "target_modules": modules,
        "task_type": None,
        "use_dora": False,
        "use_rslora": False,
    }
    metadata = {"format": "pt", CHECKSUM: _checksum(encoder.lora)}
    content = safetensors.numpy.save(tensors, metadata=metadata)
    with files_together(folder, last=CONFIG_FILE) as new:
        write_bytes(os.path.join(new, WEIGHTS_FILE), content)
        write_json(os.path.join(new, CONFIG_FILE), config, indent=2)


@public()
def load_adapters(
    model: Encoder | XLNetPretrainer | XLNetTaskModel | XLNetClassifier,
    folder: AnyPath,
) -> Lora:
    """Adds adapters from the files of `save_adapters`, or of PEFT, to a model.

    The model is then as after `add_lora`: its adapters can be trained further or merged. Adapters
    that were trained beside other weights of the same shapes are taken, with a warning.

    Args:
      model: a model without adapters.
      folder: a folder or URL with `adapter_model.safetensors` and `adapter_config.json`.

    Returns:
      The adapters; see `add_lora`.

    Raises:
      ConfigError: the model has adapters.
      DataError: the files are damaged, do not fit the model, or have parts that are not adapters
        of feed-forward kernels.

    Example:
      >>> model = load_model("runs/base", num_classes=2)
      >>> load_adapters(model, "film")
    """
    encoder: Any = getattr(model, "encoder", model)
    require(encoder.lora is None, "model", "a model without adapters", "one with them")
    with local_copy(folder) as local_folder:
        saved = read_adapters(local_folder, encoder.model)
    lora = add_lora(
        model, saved.rank, alpha=saved.alpha, dropout=saved.dropout, targets=[*saved.factors]
    )
    for path, (left, right) in saved.factors.items():
        kernel = lora.kernels[path]
        kernel.left.assign(left)
        kernel.right.assign(right)
    if saved.checksum is not None and saved.checksum != _checksum(lora):
        logging.warning("%s: the adapters were trained beside other weights", folder)
    elif saved.checksum is None and saved.base:
        logging.warning("%s: the adapters were trained beside weights of %s", folder, saved.base)
    return lora


def _transposed(factor: Any) -> np.ndarray:
    return np.ascontiguousarray(factor.numpy().T.astype(np.float32))


def _checksum(lora: Lora) -> str:
    """Checksum of the frozen kernels, in the order of their paths."""
    checksum = 0
    for path in sorted(lora.kernels):
        kernel: AdaptedKernel = lora.kernels[path]
        checksum = zlib.crc32(np.ascontiguousarray(kernel.kernel.numpy()).tobytes(), checksum)
    return f"{checksum:08x}"
