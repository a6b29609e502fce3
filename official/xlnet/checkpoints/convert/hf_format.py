"""Hugging Face (HF) format: `config.json`, `spiece.model` and a weights file.

The weights are `model.safetensors` or `pytorch_model.bin`, or shards of either listed in an index
file. PyTorch is not required.
"""

from __future__ import annotations

import errno
import functools
import os
import re
import stat
from collections.abc import Collection
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy
from absl import logging

from official.xlnet.checkpoints.convert.folders import (
    OBJECTIVE_KEY,
    check_head_size,
    num_labels,
    read_settings,
    settings_under,
    value_of,
)
from official.xlnet.checkpoints.convert.head_format import HeadFormat
from official.xlnet.checkpoints.convert.hf_tokenizer import write_vocabulary_files
from official.xlnet.checkpoints.convert.torch_reader import TorchFile
from official.xlnet.checkpoints.convert.variable_map import Weights, variables_of
from official.xlnet.checkpoints.source import CONFIG_FILES, UNTIED, Source, finite_floats
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.model import ModelConfig
from official.xlnet.configs.registry import CHECKPOINT_FORMATS, HEAD_FORMATS
from official.xlnet.configs.validation import require_one_of
from official.xlnet.errors import DataError, require_config, require_data
from official.xlnet.files.json_files import read_json, write_json
from official.xlnet.files.schema import conform, shown
from official.xlnet.tokenization.hf_vocabulary import text_settings
from official.xlnet.tokenization.special_tokens import BOS_ID, EOS_ID, PAD_ID, SETTINGS
from official.xlnet.tokenization.vocabulary_file import read_vocabulary

CONFIG_FILE = CONFIG_FILES["hf"]
WEIGHTS_FILES = ("model.safetensors", "pytorch_model.bin")
_PREFIX = "transformer."  # Prefix of encoder variables, except in files of `XLNetModel`.
_EMBEDDING = "transformer.word_embedding.weight"
_LAYER_NORM_EPSILON = 1e-12
# HF writes int(1e30) as the length of a tokenizer without a limit.
_UNLIMITED = 1_000_000
_SEGMENTS = "token_type_ids"
_BIASES = ("r_w_bias", "r_r_bias", "r_s_bias")

# {key of `config.json`: our key}.
_SETTINGS = {
    "vocab_size": "model.vocab_size",
    "d_model": "model.d_model",
    "n_layer": "model.num_layers",
    "n_head": "model.num_heads",
    "d_inner": "model.d_inner",
    "untie_r": "model.untie_r",
    "attn_type": "model.attention_type",
    "clamp_len": "model.clamp_len",
    "mem_len": "model.mem_len",
    "reuse_len": "data.reuse_len",
    "dropout": "model.dropout",
    "initializer_range": "model.init_std",
}
# HF's defaults that are not ours; its files may omit keys with default values.
_DEFAULTS = {
    "model": {
        "vocab_size": 32000,
        "num_layers": 24,
        "d_model": 1024,
        "num_heads": 16,
        "d_inner": 4096,
    }
}
# The same of `tokenizer_config.json`.
_TOKENIZER_SETTINGS = {
    "do_lower_case": "data.lowercase",
    "keep_accents": "data.keep_accents",
    "truncation_side": "task.truncation_side",
}

# Keys of either file that change nothing here: of training, generation, and what HF asks of Python.
_WITHOUT_EFFECT = re.compile(
    r"_token(_id)?$|_special_tokens$|^(transformers_version|model_type|torch_dtype|dtype|bi_data"
    r"|tie_word_embeddings|use_\w+|label2id|problem_type|(start|end)_n_top|summary_\w+|d_head"
    r"|max_position_embeddings|architectures|backend|is_local|local_files_only|unk_id|sp_model_kwargs"
    r"|tokenizer_class|name_or_path|_name_or_path|special_tokens_map_file|added_tokens_decoder"
    r"|clean_up_tokenization_spaces|task_specific_params|output_\w+|return_dict|vocab_file"
    r"|processor_class|auto_map|finetuning_task|chunk_size_feed_forward|gradient_checkpointing)$"
)
_READ_APART = (
    "n_token",
    OBJECTIVE_KEY,
    "ff_activation",
    "layer_norm_eps",
    "id2label",
    "model_max_length",
    "model_input_names",
)
# Values with which a key changes nothing.
_NEUTRAL = {"padding_side": "left", "remove_space": True, "same_length": False}

# HF's "gelu" is the exact (erf) form; the other names are variants of either form.
_ACTIVATIONS = {
    "gelu": "gelu_exact",
    "gelu_python": "gelu_exact",
    "gelu_new": "gelu",
    "gelu_accurate": "gelu",
    "gelu_fast": "gelu",
    "gelu_pytorch_tanh": "gelu",
    "relu": "relu",
}
_HF_ACTIVATIONS = {"gelu_exact": "gelu", "gelu": "gelu_new", "relu": "relu"}
_warn_once = functools.cache(logging.warning)  # Configurations are read several times in a run.


@CHECKPOINT_FORMATS.register("hf")
def open_hf(path: str) -> Source:
    """Opens a model in HF format.

    Variables of a bare encoder (`XLNetModel`) are listed with the prefix `transformer.`.

    Args:
      path: directory of the model.

    Raises:
      DataError: a file is missing or damaged.
      ConfigError: the configuration is not supported.
    """
    files = _open_files(path)
    stored = {name: shape for file in files for name, shape in file.shapes.items()}
    is_bare = _EMBEDDING not in stored and _EMBEDDING.removeprefix(_PREFIX) in stored
    prefix = _PREFIX if is_bare else ""
    shapes = {prefix + name: shape for name, shape in sorted(stored.items())}

    def read(name: str) -> np.ndarray:
        stored_name = name.removeprefix(prefix)
        value = next(file for file in files if stored_name in file.shapes).read(stored_name)
        return finite_floats(value, f"{path}: {stored_name}")

    source = Source("hf", path, XLNetConfig.from_dict(_DEFAULTS), shapes, read)
    _read_config(source)
    model = source.config.model
    model.untie_r = model.untie_r or not _repeats_biases(source)
    lm_head, embedding = shapes.get(UNTIED), shapes.get(_EMBEDDING)
    if lm_head and lm_head == embedding and np.array_equal(read(UNTIED), read(_EMBEDDING)):
        del shapes[UNTIED]
    return source


def _read_config(source: Source) -> None:
    """Takes the configuration from the files of a folder."""
    path, config = os.path.join(source.path, CONFIG_FILE), source.config
    tree = read_json(path, dict[str, Any])
    _check_supported(tree, path)
    if "n_token" in tree:  # An old name of `vocab_size`.
        tree = {"vocab_size": tree["n_token"], **tree}
    read_settings(config, {**_SETTINGS, OBJECTIVE_KEY: "objective.kind"}, tree, path)
    _name_unused(tree, {*_SETTINGS, *_READ_APART}, path)
    model, data = config.model, config.data
    check_head_size(model, tree, path)
    activation = value_of(tree, "ff_activation", path, str, default="gelu")
    require_one_of(f"{path}: ff_activation", activation, tuple(_ACTIVATIONS))
    model.activation = _ACTIVATIONS[activation]
    model.dropatt = model.dropout
    model.clamp_len = max(0, model.clamp_len)
    data.seq_len = max(data.seq_len, 2 * data.reuse_len)  # It has to be greater.
    tokenizer = os.path.join(source.path, SETTINGS)
    if os.path.exists(tokenizer):
        settings = read_json(tokenizer, dict[str, Any])
        _read_segments(settings, tokenizer, model)
        _name_unused(settings, {*_TOKENIZER_SETTINGS, *_READ_APART}, tokenizer)
        read_settings(config, _TOKENIZER_SETTINGS, settings, tokenizer)
        length = value_of(settings, "model_max_length", tokenizer, float, default=0)
        if 0 < length < _UNLIMITED:
            config.task.max_length = int(length)
    data.lowercase, data.keep_accents = text_settings(source.path)
    if name := _kind_of_head(source, tree):
        _read_task(source, name, tree, path)


def _name_unused(tree: dict[str, Any], used: Collection[str], path: str) -> None:
    """Names the keys of a file that nothing here reads, in one line."""
    unused = [
        key
        for key, value in tree.items()
        if not (key in used or _WITHOUT_EFFECT.search(key) or value in (None, _NEUTRAL.get(key)))
    ]
    if unused:
        _warn_once(f"{path}: keys that this program does not use: {', '.join(sorted(unused))}")


def _read_segments(settings: dict[str, Any], path: str, model: ModelConfig) -> None:
    """Sets whether the model knows segments: whether its tokenizer gave any.

    Transformers 4 gives `token_type_ids`; 5, whose files name a backend, only where
    `model_input_names` has them.
    """
    default = ["input_ids"] if "backend" in settings else [_SEGMENTS]
    names = value_of(settings, "model_input_names", path, list, default=default)
    model.segments = _SEGMENTS in names
    if not model.segments:
        _warn_once(
            f"{path} gives no {_SEGMENTS}, so all tokens are of one segment, as they are in "
            "transformers (model.segments=false); a model that learned segments needs "
            "--set=model.segments=true"
        )


def _read_task(source: Source, name: str, tree: dict[str, Any], path: str) -> None:
    """Takes the settings of the head of a task."""
    source.config.task = task = source.config.task.updated({"name": name}, "")
    head = HEAD_FORMATS[name]
    read_settings(source.config, head.hf_settings, tree, path)
    if any("summary" in row.xlnet.name for row in head.rows):
        task.summary = value_of(tree, "summary_type", path, str, default="last")
    logits = head.logits().hf
    if "C" in logits.shape:
        names = value_of(tree, "id2label", path, dict, default={})
        class_numbers = list(map(str, range(num_labels(source, logits.name, logits.shape))))
        are_labels = all(isinstance(label, str | int) for label in names.values())
        require_data(
            not names or (names.keys() == {*class_numbers} and are_labels),
            f"{path}: id2label",
            f"a label for each of the {len(class_numbers)} outputs",
            shown(names),
        )
        task.labels = tuple(
            str(names.get(class_number, class_number)) for class_number in class_numbers
        )


def _kind_of_head(source: Source, tree: dict[str, Any]) -> str:
    """`task.name` of the model's head; empty if there is none."""
    heads = {name: HEAD_FORMATS[name] for name in HEAD_FORMATS.names()}
    heads = {k: head for k, head in heads.items() if head.logits().hf.name in source.shapes}
    kernels = sorted({head.logits().hf.name for head in heads.values()})
    require_data(len(kernels) <= 1, source.path, "one head", " and ".join(kernels))
    architectures = value_of(tree, "architectures", CONFIG_FILE, list, default=[])
    num_logits = next(iter(source.shapes[kernels[0]]), 0) if kernels else 0

    def fit(name: str) -> tuple[bool, bool, bool]:
        head = heads[name]
        return (
            head.architecture in architectures,
            head.problem is not None and head.problem == tree.get("problem_type"),
            num_logits in head.usual_logits,
        )

    return max(heads, key=fit, default="")


def _repeats_biases(source: Source) -> bool:
    """Whether all layers have equal biases, as `untie_r: false` implies."""
    names = [name for name in source.shapes if name.endswith(_BIASES)]
    names_by_bias = [[name for name in names if name.endswith(bias)] for bias in _BIASES]
    return all(
        np.array_equal(source.read(name), source.read(layer_names[0]))
        for layer_names in names_by_bias
        for name in layer_names[1:]
    )


class SafetensorsFile:
    """Lazy reader of the tensors in a safetensors file.

    Attributes:
      shapes: {name of a tensor: its shape}.
      metadata: texts that the file has besides.
    """

    def __init__(self, path: str):
        self._path = path
        try:
            self._file = safetensors.safe_open(path, "np")
            names = list(self._file.keys())
            self.shapes = {name: tuple(self._file.get_slice(name).get_shape()) for name in names}
            self.metadata: dict[str, str] = self._file.metadata() or {}
        except safetensors.SafetensorError as error:
            raise DataError(f"{path} is not a valid safetensors file: {error}") from error

    def read(self, name: str) -> np.ndarray:
        try:
            return self._file.get_tensor(name)
        except (safetensors.SafetensorError, AttributeError, TypeError) as error:
            dtype = self._file.get_slice(name).get_dtype()  # E.g. F8_E4M3, which NumPy lacks.
            raise DataError(f"{self._path}: {name} of {dtype} cannot be read: {error}") from error


def write_hf(folder: str, weights: Weights, vocab_file: str) -> None:
    """Writes a model in HF format.

    Args:
      folder: an existing empty directory.
      weights: the weights to write.
      vocab_file: SentencePiece model to copy.
    """
    config = weights.config
    head = (
        HEAD_FORMATS[config.task.name] if config.task.name in HEAD_FORMATS.names() else HeadFormat()
    )
    tensors = {name: np.ascontiguousarray(value) for name, value in variables_of("hf", weights)}
    if all(name.startswith(_PREFIX) for name in tensors):
        architecture = "XLNetModel"
        tensors = {name.removeprefix(_PREFIX): value for name, value in tensors.items()}
    else:
        architecture = head.architecture
    of_tokenizer = write_vocabulary_files(
        folder, read_vocabulary(vocab_file), config.data.lowercase, config.data.keep_accents
    )
    save_tensors(tensors, os.path.join(folder, WEIGHTS_FILES[0]))
    tree = _hf_config(config, architecture, head)
    write_json(os.path.join(folder, CONFIG_FILE), tree, indent=2)
    tokenizer = {
        **of_tokenizer,
        # Without it, the tokenizers of transformers 5 return no segments; transformers 4 does.
        "model_input_names": ["input_ids", *[_SEGMENTS] * config.model.segments, "attention_mask"],
        **settings_under(_TOKENIZER_SETTINGS, config),
    }
    if config.task.name:
        tokenizer["model_max_length"] = config.task.max_length
    else:
        del tokenizer["truncation_side"]
    write_json(os.path.join(folder, SETTINGS), tokenizer, indent=2)


def save_tensors(tensors: dict[str, np.ndarray], path: str) -> None:
    """Writes a safetensors file; raises `OSError`, for example if the disk is full."""
    with open(path, "wb") as file:  # Who may read it is decided as for any other file.
        mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
    try:
        safetensors.numpy.save_file(tensors, path, metadata={"format": "pt"})
        os.chmod(path, mode)  # The package forbids others to read it.
    except safetensors.SafetensorError as error:
        code = re.search(r"os error (\d+)", str(error))
        error_number = int(code[1]) if code else errno.EIO
        raise OSError(error_number, os.strerror(error_number), path) from None


def _hf_config(config: XLNetConfig, architecture: str, head: HeadFormat) -> dict[str, Any]:
    model, task = config.model, config.task
    tree = {
        "model_type": "xlnet",
        "architectures": [architecture],
        **settings_under({**_SETTINGS, **head.hf_settings}, config),
        "vocab_size": model.num_embeddings,
        "d_head": model.d_head,
        "ff_activation": _HF_ACTIVATIONS[model.activation],
        # HF has no causal objective: a model that was trained with it is read so by `uni`.
        "attn_type": "uni" if config.reads_left_to_right else "bi",
        "clamp_len": model.clamp_len or -1,
        "bi_data": False,
        "same_length": False,
        "layer_norm_eps": _LAYER_NORM_EPSILON,
        "pad_token_id": PAD_ID,
        "bos_token_id": BOS_ID,
        "eos_token_id": EOS_ID,
        "summary_type": task.summary,
        "summary_use_proj": True,
        "summary_activation": "tanh",
        "summary_last_dropout": model.dropout,
        "torch_dtype": "float32",
    }
    if config.objective.kind != "permutation":
        tree[OBJECTIVE_KEY] = config.objective.kind
    if head.problem:
        tree["problem_type"] = head.problem
    if labels := task.labels or head.hf_labels:
        tree["id2label"] = {str(class_number): label for class_number, label in enumerate(labels)}
        tree["label2id"] = {label: class_number for class_number, label in enumerate(labels)}
    return tree


def _check_supported(tree: dict[str, Any], path: str) -> None:
    """Raises `ConfigError` if the configuration uses a feature of HF that ours lacks."""
    for key, supported in (
        ("model_type", "xlnet"),
        ("layer_norm_eps", _LAYER_NORM_EPSILON),
        ("summary_use_proj", True),
        ("summary_activation", "tanh"),
        ("same_length", False),
    ):
        value = tree.get(key)
        is_supported = value is None or value == supported
        require_config(is_supported, f"{path}: {key}", repr(supported), repr(value))


def _open_files(path: str) -> list[SafetensorsFile | TorchFile]:
    readers: list[Any] = [SafetensorsFile, TorchFile]
    for name, opened in zip(WEIGHTS_FILES, readers, strict=True):
        where = os.path.join(path, f"{name}.index.json")
        if os.path.exists(os.path.join(path, name)):
            return [opened(os.path.join(path, name))]
        if os.path.exists(where):
            weight_map = read_json(where, dict[str, Any]).get("weight_map")
            names = conform(weight_map, dict[str, str], f"{where}: weight_map")
            shards = sorted(set(names.values()))
            for shard in shards:
                require_data(
                    shard in os.listdir(path), where, "names of files beside it", repr(shard)
                )
            return [opened(os.path.join(path, shard)) for shard in shards]
    raise DataError(f"{path}: expected {' or '.join(WEIGHTS_FILES)} or an index of its shards")
