"""Mapping of variable names and shapes between our format, the TF1 release's and HF's.

Each row gives the name and shape of a variable in every format that has it. Dimension letters:
V rows of the word embedding, D hidden size (S: of the summary), E = 2 D, N heads, H head size,
F feed-forward size, L layers, C classes; digits stand for themselves. A row determines the
conversion:

* a different order of letters is a transposition, and 1 is an axis of length one;
* `{layer}` in our name but not in theirs: their variable stacks all layers along the axis L;
* `{layer}` in their name but not in ours: their variable is repeated in every layer.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator

import numpy as np

from official.xlnet.checkpoints.source import Source
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.registry import HEAD_FORMATS
from official.xlnet.errors import DataError, require_data


@dataclasses.dataclass(frozen=True)
class Name:
    """Name and dimension letters of a variable in one format."""

    name: str
    shape: str


@dataclasses.dataclass(frozen=True)
class Row:
    """A variable in our format and in the others that have it."""

    xlnet: Name
    tf1: Name | None
    hf: Name


def row(ours: str, shape: str, tf1: str | None, tf1_shape: str, hf: str, hf_shape: str) -> Row:
    """Returns a row: name and dimension letters in our format, in TF1's, if it has it, and HF's."""
    in_tf1 = None if tf1 is None else Name(tf1, tf1_shape)
    return Row(Name(ours, shape), in_tf1, Name(hf, hf_shape))


_OURS, _TF1, _HF = "encoder/blocks/{layer}/", "model/transformer/", "transformer."
_TF1_LAYER, _HF_LAYER = _TF1 + "layer_{layer}/", _HF + "layer.{layer}."
_MASK_EMBEDDING = "encoder/mask_embedding"
_NUMBER = re.compile(r"\d+")
_LM_BIAS, _NEVER = "lm_head/bias", -1e4  # A logit whose probability is 0.
_BIASES = (("content", "r_w"), ("position", "r_r"), ("segment", "r_s"))

# fmt: off
_EMBEDDINGS = (
    row("encoder/word_embedding/embeddings", "VD", _TF1 + "word_embedding/lookup_table", "VD",
         _HF + "word_embedding.weight", "VD"),
    row(_MASK_EMBEDDING, "D", _TF1 + "mask_emb/mask_emb", "11D", _HF + "mask_emb", "11D"),
)
_LAYERS = (
    *(row(f"{_OURS}attention/{ours}_kernel", "DNH", f"{_TF1_LAYER}rel_attn/{theirs}/kernel", "DNH",
           f"{_HF_LAYER}rel_attn.{theirs}", "DNH")
      for ours, theirs in (("query", "q"), ("key", "k"), ("value", "v"), ("position", "r"),
                           ("output", "o"))),
    row(_OURS + "attention/segment_embedding", "2NH", _TF1 + "seg_embed", "L2NH",
         _HF_LAYER + "rel_attn.seg_embed", "2NH"),
    *(row(f"{_OURS}{ours_norm}/{ours}", "D", f"{_TF1_LAYER}{part}/LayerNorm/{ours}", "D",
           f"{_HF_LAYER}{part}.layer_norm.{theirs}", "D")
      for ours_norm, part in (("attention_norm", "rel_attn"), ("feed_forward_norm", "ff"))
      for ours, theirs in (("gamma", "weight"), ("beta", "bias"))),
    row(_OURS + "feed_forward/inner_kernel", "DF", _TF1_LAYER + "ff/layer_1/kernel", "DF",
         _HF_LAYER + "ff.layer_1.weight", "FD"),
    row(_OURS + "feed_forward/inner_bias", "F", _TF1_LAYER + "ff/layer_1/bias", "F",
         _HF_LAYER + "ff.layer_1.bias", "F"),
    row(_OURS + "feed_forward/outer_kernel", "FD", _TF1_LAYER + "ff/layer_2/kernel", "FD",
         _HF_LAYER + "ff.layer_2.weight", "DF"),
    row(_OURS + "feed_forward/outer_bias", "D", _TF1_LAYER + "ff/layer_2/bias", "D",
         _HF_LAYER + "ff.layer_2.bias", "D"),
)
_BIASES_OF_LAYERS = tuple(
    row(f"{_OURS}attention/biases/{ours}_bias", "NH", f"{_TF1}{theirs}_bias", "LNH",
         f"{_HF_LAYER}rel_attn.{theirs}_bias", "NH")
    for ours, theirs in _BIASES
)
_SHARED_BIASES = tuple(
    row(f"encoder/shared_biases/{ours}_bias", "NH", f"{_TF1}{theirs}_bias", "NH",
         f"{_HF_LAYER}rel_attn.{theirs}_bias", "NH")
    for ours, theirs in _BIASES
)
_LM_HEAD = (
    row(_LM_BIAS, "V", "model/lm_loss/bias", "V", "lm_loss.bias", "V"),
)


# fmt: on

# Optional variables: fine-tuned TF1 models have neither, fine-tuned HF models have no LM head.
_OPTIONAL = (_MASK_EMBEDDING, "lm_head/bias")


def rows_of(config: XLNetConfig, *formats: str) -> tuple[Row, ...]:
    """Returns the variables of a model that exist in all given formats.

    Args:
      config: configuration of the model.
      *formats: names of formats.
    """
    biases = _BIASES_OF_LAYERS if config.model.untie_r else _SHARED_BIASES
    task = config.task.name
    head = HEAD_FORMATS[task].rows if task in HEAD_FORMATS.names() else ()
    rows = _EMBEDDINGS + _LAYERS + biases + _LM_HEAD + head
    return tuple(row for row in rows if all(getattr(row, name) for name in formats))


def shapes_of(config: XLNetConfig) -> dict[str, tuple[int, ...]]:
    """{name: shape} of the variables of a model in our format."""
    sizes = _sizes(config)
    return {
        name: tuple(sizes[letter] for letter in row.xlnet.shape)
        for row in rows_of(config)
        for name in _expand(row.xlnet, config)
    }


class Weights:
    """The variables of a source under our names and shapes, read lazily.

    Args:
      source: reader of the model.
      to: name of the output format.

    Attributes:
      config: configuration of the model.
      shapes: {our name: our shape} of the variables to convert: those in the source that the
        output format has.
      not_filled: our names of the variables missing from the source.
      left_over: names of source variables that are not converted.

    Raises:
      DataError: a required variable is missing from the source, a shape does not match, or a layer
        is left over.
    """

    def __init__(self, source: Source, to: str):
        self.config = source.config
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.not_filled: list[str] = []
        self._source, self._to = source, to
        self._origins: dict[str, tuple[str, str, str, int]] = {}
        self._stacks: dict[str, np.ndarray] = {}
        sizes, shapes = _sizes(source.config), shapes_of(source.config)
        used: set[str] = set()
        for row in rows_of(source.config, source.format, to):
            theirs: Name = getattr(row, source.format)
            names = _expand(theirs, source.config)
            for name in names:
                if name in source.shapes:
                    where, shape = f"{source.path}: variable {name!r}", list(source.shapes[name])
                    expected = [sizes[letter] for letter in theirs.shape]
                    require_data(shape == expected, where, f"shape {expected}", shape)
                    used.add(name)
                elif row.xlnet.name not in _OPTIONAL:
                    raise DataError(f"{source.path}: expected a variable {name!r}, got none")
            for layer, ours in enumerate(_expand(row.xlnet, source.config)):
                name = names[min(layer, len(names) - 1)]
                if name not in source.shapes:
                    self.not_filled.append(ours)
                    continue
                self.shapes[ours] = shapes[ours]
                self._origins[ours] = name, theirs.shape, row.xlnet.shape, layer
        self.left_over = sorted(set(source.shapes) - used)
        of_layers = {_NUMBER.sub("0", name) for name in used}
        for name in self.left_over:
            require_data(
                _NUMBER.sub("0", name) not in of_layers,
                source.path,
                f"{source.config.model.num_layers} layers, as in its configuration",
                f"also a variable {name!r}",
            )

    def read(self, ours: str) -> np.ndarray:
        """Returns the value of a variable, by our name and in our shape, as float32."""
        name, source_shape, shape, layer = self._origins[ours]
        if "L" in source_shape:  # A small variable with all layers; cached instead of read L times.
            if name not in self._stacks:
                self._stacks[name] = self._source.read(name)
            return _reorder(self._stacks[name][layer], source_shape.replace("L", ""), shape)
        value = _reorder(self._source.read(name), source_shape, shape)
        if ours == _LM_BIAS and self._to != "xlnet" and self.config.model.embedding_rows:
            value[self.config.model.vocab_size :] = _NEVER  # Other formats do not know padding.
        return value


def variables_of(format_name: str, weights: Weights) -> Iterator[tuple[str, np.ndarray]]:
    """Yields the variables of a model in an output format.

    Args:
      format_name: name of the format.
      weights: the weights to convert.

    Yields:
      Name and float32 value of each variable.
    """
    for row in rows_of(weights.config, format_name):
        ours = _expand(row.xlnet, weights.config)
        if ours[0] not in weights.shapes:
            continue
        theirs: Name = getattr(row, format_name)
        names = _expand(theirs, weights.config)
        if "L" in theirs.shape:
            layers = [weights.read(name) for name in ours]
            rest = theirs.shape.replace("L", "")
            yield names[0], np.stack([_reorder(layer, row.xlnet.shape, rest) for layer in layers])
            continue
        for layer_number, name in enumerate(names):
            value = weights.read(ours[min(layer_number, len(ours) - 1)])
            if format_name != "xlnet":
                value = _in_units_of_labels(row.xlnet.name, value, weights.config)
            yield name, _reorder(value, row.xlnet.shape, theirs.shape)


def _in_units_of_labels(name: str, value: np.ndarray, config: XLNetConfig) -> np.ndarray:
    """Includes mean and scale of a regression in its last layer, as other formats have neither."""
    mean, scale = config.task.label_mean_and_scale()
    folded = {"head/logits/kernel": value * scale, "head/logits/bias": value * scale + mean}
    return folded[name].astype(value.dtype) if name in folded else value


def _expand(name: Name, config: XLNetConfig) -> list[str]:
    """Names of a row in a format: one, or one per layer."""
    num_layers = config.model.num_layers if "{layer}" in name.name else 1
    scope = config.task.as_dict().get("scope") or "task"
    return [name.name.format(layer=layer, scope=scope) for layer in range(num_layers)]


def _sizes(config: XLNetConfig) -> dict[str, int]:
    """{dimension letter: size}."""
    model = config.model
    return {
        "V": model.num_embeddings,
        "D": model.d_model,
        "S": model.d_model,
        "E": 2 * model.d_model,
        "N": model.num_heads,
        "H": model.d_head,
        "F": model.d_inner,
        "L": model.num_layers,
        "C": len(config.task.labels),
        "1": 1,
        "2": 2,
    }


def _reorder(value: np.ndarray, old: str, new: str) -> np.ndarray:
    """Transposes a value to another order of dimension letters; adds or removes axes of length 1.

    Example: _reorder(value, "D1", "1D") of a [3, 1] value is [1, 3].
    """
    value = value.reshape([n for n, letter in zip(value.shape, old, strict=True) if letter != "1"])
    kept = old.replace("1", "")
    value = value.transpose([kept.index(letter) for letter in new.replace("1", "")])
    return np.expand_dims(value, [axis for axis, letter in enumerate(new) if letter == "1"])
