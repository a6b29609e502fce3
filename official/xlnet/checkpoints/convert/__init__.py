"""Conversion of models between our format, Hugging Face's (HF) and the TF1 release's."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

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
from official.xlnet.files.atomic import write_bytes
from official.xlnet.files.json_files import read_record
from official.xlnet.files.new_folder import new_folder
from official.xlnet.tokenization.tokenizer import Tokenizer
from official.xlnet.tokenization.vocabulary_file import write_vocabulary


def convert_model(source: str, output: str, to: str, overrides: Sequence[str]) -> dict[str, Any]:
    """Converts a model to another format; see `official.xlnet.api.convert.convert`."""
    opened = open_source(source)
    opened.config.apply(overrides)
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
