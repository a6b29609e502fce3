"""Checkpoints in and out: the TF1 release's form, HF's and ours, weight for weight."""

from __future__ import annotations

import os
from typing import Any

from official.xlnet.checkpoints.convert import hf_format, tf1_format
from official.xlnet.checkpoints.convert.folders import new_folder
from official.xlnet.checkpoints.convert.hf_format import HfSource, write_hf
from official.xlnet.checkpoints.convert.tf1_format import Tf1Source, write_tf1
from official.xlnet.checkpoints.convert.variable_map import Source, Weights
from official.xlnet.checkpoints.convert.xlnet_format import XLNetSource, write_xlnet
from official.xlnet.configs.experiment import CONFIG_FILE
from official.xlnet.errors import ConfigError, DataError
from official.xlnet.tokenization.tokenizer import Tokenizer

FORMS = ("xlnet", "hf", "tf1")


def convert(
    source: str, output: str, to: str = "xlnet", overrides: list[str] | tuple[str, ...] = ()
) -> dict[str, Any]:
    """Writes a model of one form in another.

    Variables are read one after the other, so memory is that of the weights once. The output
    appears when it is whole.

    Args:
      source: a folder of the TF1 release's form, of HF's, or a model directory.
      output: a new folder.
      to: one of `FORMS`.
      overrides: `key=value` strings for the configuration, as in `XLNetConfig.load`.

    Returns:
      variables: number of variables that were converted, as we count them.
      parameters: numbers in them.
      left_over: the source's names of variables that the output does not have.
      not_filled: our names of variables that the source lacks.

    Raises:
      DataError: the source is of no known form, damaged, incomplete, or its parts do not fit
        together; or the output exists.
      ConfigError: its configuration is not one that the other form can express.
    """
    opened = open_source(source)
    for override in overrides:
        opened.config.set(override)
    opened.config.check()
    if opened.config.task.summary == "attn":
        raise ConfigError(
            "task.summary: expected last, first or mean, got attn, which is only ours"
        )
    weights = Weights(opened, to)
    vocab_size = Tokenizer(opened.vocab_file).vocab_size
    if vocab_size != opened.config.model.vocab_size:
        raise DataError(
            f"vocabulary {opened.vocab_file!r}: expected {opened.config.model.vocab_size} pieces, "
            f"as in the model's configuration, got {vocab_size}"
        )
    with new_folder(output) as folder:
        if to == "xlnet":
            write_xlnet(folder, weights, opened.vocab_file)
        elif to == "hf":
            write_hf(folder, weights, opened.vocab_file)
        else:
            write_tf1(folder, weights, opened.vocab_file)
    return {
        "variables": len(weights.shapes),
        "parameters": weights.num_parameters,
        "left_over": weights.left_over,
        "not_filled": weights.not_filled,
    }


def open_source(path: str) -> Source:
    """Opens a folder by what is in it.

    Raises:
      DataError: it is of no known form.
    """
    for name, form in (
        (CONFIG_FILE, XLNetSource),
        (tf1_format.CONFIG_FILE, Tf1Source),
        (hf_format.CONFIG_FILE, HfSource),
    ):
        if os.path.isfile(os.path.join(path, name)):
            return form(path)
    if not os.path.isdir(path):
        raise DataError(f"no folder at {path!r}: expected a model")
    raise DataError(
        f"{path!r} holds no model: expected {CONFIG_FILE} (ours), {tf1_format.CONFIG_FILE} "
        f"(TF1 release) or {hf_format.CONFIG_FILE} (HF)"
    )
