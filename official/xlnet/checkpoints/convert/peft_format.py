"""Adapters in the files of PEFT: `adapter_config.json` and `adapter_model.safetensors`.

PEFT adapts x·Wᵀ of an `nn.Linear` to x·Wᵀ + (lora_alpha / r)·(x·Aᵀ)·Bᵀ, with A [r, I] and B [O, r]:
our L and R, transposed. In the XLNet of transformers, the matrices of feed-forward layers are
`nn.Linear`. The projections of attention are parameters [D, N, H], for which PEFT computes another
product.
"""

from __future__ import annotations

import dataclasses
import os
import re
from typing import Any

import numpy as np

from official.xlnet.checkpoints.convert.hf_format import SafetensorsFile
from official.xlnet.checkpoints.source import finite_floats
from official.xlnet.configs.model import ModelConfig
from official.xlnet.errors import DataError, require_data
from official.xlnet.files.json_files import read_json

CONFIG_FILE = "adapter_config.json"
WEIGHTS_FILE = "adapter_model.safetensors"

PREFIX = "base_model.model."
HEAD_PREFIX = f"{PREFIX}transformer."  # In models with a head.
THEIR_MATRIX = {"inner": "layer_1", "outer": "layer_2"}
_OUR_MATRIX = {theirs: ours for ours, theirs in THEIR_MATRIX.items()}
OUR_PATH = re.compile(r"layer_(\d+)/feed_forward/(inner|outer)")
_THEIR_TENSOR = re.compile(r"(?:.*\.)?(layer\.(\d+)\.ff\.(layer_[12]))\.lora_([AB])\.weight")
CHECKSUM = "base_checksum"  # In the metadata of the weights file.

# Keys of `adapter_config.json` that do not change what loaded adapters compute.
_WITHOUT_EFFECT = {
    "auto_mapping",
    "base_model_name_or_path",
    "ensure_weight_tying",
    "exclude_modules",
    "fan_in_fan_out",
    "inference_mode",
    "layers_pattern",
    "layers_to_transform",
    "megatron_core",
    "peft_version",
    "qalora_group_size",
    "revision",
    "runtime_config",
    "target_modules",
    "task_type",
}
_READ = {"peft_type", "r", "lora_alpha", "lora_dropout", "use_rslora"}
NO_BIAS = "none"
# Values of `init_lora_weights` that leave the weights of the base model as they are.
_USUAL_STARTS = (True, False, "true", "gaussian", "eva", "orthogonal", None)


@dataclasses.dataclass(frozen=True)
class SavedAdapters:
    """Adapters of a file.

    Attributes:
      rank: rank, r.
      alpha: numerator of the scale, α.
      dropout: dropout rate of the inputs.
      factors: L [I, r] and R [r, O], by our path of the kernel.
      base: name of the model beside whose weights they were trained; empty if it is unknown.
      checksum: checksum of its adapted kernels; None in files of PEFT.
    """

    rank: int
    alpha: float
    dropout: float
    factors: dict[str, tuple[np.ndarray, np.ndarray]]
    base: str
    checksum: str | None


def read_adapters(folder: str, model: ModelConfig) -> SavedAdapters:
    """Reads the adapters of a folder.

    Args:
      folder: the folder.
      model: the model that they have to fit.

    Raises:
      DataError: the files are damaged, do not fit the model, or have parts that are not adapters
        of feed-forward kernels.
    """
    config_path = os.path.join(folder, CONFIG_FILE)
    weights_path = os.path.join(folder, WEIGHTS_FILE)
    for path in (config_path, weights_path):
        require_data(os.path.isfile(path), path, "a file of adapters", "none")
    config = read_json(config_path, dict[str, Any])
    rank, alpha, dropout = _settings(config, config_path)
    file = SafetensorsFile(weights_path)
    shapes = _shapes(model)
    factors = {}
    for path, (left_name, right_name) in _names(file, weights_path).items():
        require_data(
            path in shapes,
            f"{weights_path}: {left_name}",
            f"one of the {model.num_layers} layers of the model",
            "one more",
        )
        num_rows, num_columns = shapes[path]
        left = _tensor(file, left_name, weights_path, (rank, num_rows))
        right = _tensor(file, right_name, weights_path, (num_columns, rank))
        factors[path] = left.T, right.T
    base = str(config.get("base_model_name_or_path") or "")
    checksum = file.metadata.get(CHECKSUM)
    return SavedAdapters(rank, alpha, dropout, factors, base, checksum)


def _tensor(file: SafetensorsFile, name: str, path: str, shape: tuple[int, int]) -> np.ndarray:
    """A tensor of a file, in float32; refuses another shape."""
    where = f"{path}: {name}"
    expected = f"the shape {shape}, as the model and the rank of the adapters have it"
    require_data(file.shapes[name] == shape, where, expected, file.shapes[name])
    return finite_floats(file.read(name), where)


def _settings(config: dict[str, Any], path: str) -> tuple[int, float, float]:
    """Rank, α and dropout rate; refuses settings that would compute something else."""
    kind = config.get("peft_type")
    require_data(kind == "LORA", f"{path}: peft_type", "LORA", kind)
    start = config.get("init_lora_weights")
    require_data(
        start in _USUAL_STARTS,
        f"{path}: init_lora_weights",
        "adapters beside unchanged weights",
        start,
    )
    bias = config.get("bias", NO_BIAS)
    require_data(bias == NO_BIAS, f"{path}: bias", NO_BIAS, bias)
    checked = {"init_lora_weights", "bias"}
    for key, value in config.items():
        if value and key not in _WITHOUT_EFFECT | _READ | checked:
            raise DataError(f"{path}: {key}: expected none, as for plain LoRA, got {value!r}")
    rank = config.get("r")
    is_rank = isinstance(rank, int) and not isinstance(rank, bool) and rank > 0
    require_data(is_rank, f"{path}: r", "a positive integer", rank)
    assert isinstance(rank, int)
    alpha, dropout = config.get("lora_alpha"), config.get("lora_dropout", 0.0)
    is_alpha = isinstance(alpha, int | float) and alpha > 0
    require_data(is_alpha, f"{path}: lora_alpha", "a positive number", alpha)
    assert isinstance(alpha, int | float)
    is_rate = isinstance(dropout, int | float) and 0 <= dropout < 1
    require_data(is_rate, f"{path}: lora_dropout", "a number in [0, 1)", dropout)
    if config.get("use_rslora"):  # Its scale is alpha / √r.
        alpha *= rank**0.5
    return rank, float(alpha), float(dropout)


def _names(file: SafetensorsFile, path: str) -> dict[str, tuple[str, str]]:
    """Names of the tensors of A and B, by our path of the kernel."""
    pairs: dict[str, dict[str, str]] = {}
    for name in file.shapes:
        match = _THEIR_TENSOR.fullmatch(name)
        require_data(
            match is not None,
            f"{path}: {name}",
            "adapters of feed-forward layers (layer.N.ff.layer_1 or layer_2) alone",
            "another tensor",
        )
        assert match is not None
        module = f"layer_{match[2]}/feed_forward/{_OUR_MATRIX[match[3]]}"
        pairs.setdefault(module, {})[match[4]] = name
    require_data(bool(pairs), path, "adapters", "none")
    for module, pair in pairs.items():
        require_data(len(pair) == 2, f"{path}: {module}", "lora_A and lora_B", [*pair.values()])
    return {module: (pair["A"], pair["B"]) for module, pair in pairs.items()}


def _shapes(model: ModelConfig) -> dict[str, tuple[int, int]]:
    """Shapes [I, O] of the feed-forward kernels of a model, by our path."""
    shapes = {}
    for layer in range(model.num_layers):
        shapes[f"layer_{layer}/feed_forward/inner"] = (model.d_model, model.d_inner)
        shapes[f"layer_{layer}/feed_forward/outer"] = (model.d_inner, model.d_model)
    return shapes
