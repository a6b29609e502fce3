"""Conversion of models between our format, Hugging Face's (HF) and the TF1 release's."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Annotated, Any

from absl import logging

from official.xlnet.checkpoints.convert.differences import (
    check_convertible,
    differences,
    readme,
)
from official.xlnet.checkpoints.convert.hf_format import write_hf
from official.xlnet.checkpoints.convert.tf1_format import write_tf1
from official.xlnet.checkpoints.convert.variable_map import Weights, variables_of
from official.xlnet.checkpoints.source import open_source
from official.xlnet.checkpoints.xlnet_format import write_variables
from official.xlnet.configs.choices import CHECKPOINT_FORMS
from official.xlnet.files.arguments import OutputDirectory, Path
from official.xlnet.files.atomic import new_folder, write_bytes
from official.xlnet.files.json_files import read_record
from official.xlnet.files.public import public
from official.xlnet.files.schema import OneOf
from official.xlnet.tokenization.tokenizer import Tokenizer
from official.xlnet.tokenization.vocabulary_file import write_vocabulary


@public(overrides="set", model="source")
def convert(
    source: Path,
    output: OutputDirectory,
    to: Annotated[str, OneOf(CHECKPOINT_FORMS)] = "xlnet",
    set: Sequence[str] = (),
) -> dict[str, Any]:
    """Converts a model between our format, Hugging Face (HF) and the TF1 release.

    The format of the source is detected from its files: xlnet_config.json (TF1 release),
    config.json (HF) or config.yaml (our model directory).

    Args:
      source: directory of the model to convert.
      output: output directory; must not exist or be empty.
      to: output format.
      set: configuration override `key=value`, as in `XLNetConfig.load`; may be repeated.

    Returns:
      A dictionary with:
        variables: number of converted variables.
        parameters: number of converted parameters.
        left_over: names of source variables that were not converted.
        not_filled: our names of the variables missing from the source.
        differences: a sentence for each setting that the output format does not have and with
          which it computes something else; also in `README.md` of the output.

    Raises:
      DataError: the format of the source is not recognized, it is damaged, incomplete or
        inconsistent, or the output already exists.
      ConfigError: the output format cannot represent the configuration.

    Example:
      $ xlnet convert --source=runs/model --output=runs/hf --to=hf

      >>> convert("xlnet-base-cased", "runs/base")["not_filled"]
      []
    """
    opened = open_source(source)
    opened.config.apply(set)
    check_convertible(opened.config)
    tokenizer = Tokenizer(opened.vocab_file)  # Checked before anything is written.
    sentences = differences(opened.config, to, tuple(tokenizer.added_tokens.values()))
    weights = Weights(opened, to)
    with new_folder(output) as folder:
        if to == "xlnet":
            write_variables(folder, variables_of(to, weights))
            write_vocabulary(tokenizer.model_proto, folder)
            opened.config.save(folder)
        elif to == "hf":
            write_hf(folder, weights, opened.vocab_file)
        else:
            write_tf1(folder, weights, opened.vocab_file)
        metrics = read_record(os.path.join(source, "metrics.json"))
        if text := readme(to, opened.config, metrics, sentences):
            write_bytes(os.path.join(folder, "README.md"), text.encode())
    for sentence in sentences:
        logging.warning("%s: %s", output, sentence)
    return {
        "variables": len(weights.shapes),
        "parameters": sum(map(math.prod, weights.shapes.values())),
        "left_over": weights.left_over,
        "not_filled": weights.not_filled,
        "differences": sentences,
    }
