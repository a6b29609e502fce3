"""Benchmark of checkpoint conversion at the size of XLNet-large: time and memory.

    python -m benchmarks.inference.convert

Converts randomly initialized weights, each time in a separate process. Temporarily needs 7 GB of
disk space. The last line of output is JSON: seconds and peak resident gigabytes of each conversion.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile

import numpy as np
import sentencepiece

from benchmarks.harness.command_line import flag, parse
from benchmarks.harness.models import run_xlnet
from official.xlnet.checkpoints.convert.tf1_format import write_tf1
from official.xlnet.checkpoints.convert.variable_map import Weights, shapes_of
from official.xlnet.checkpoints.source import Source
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.tokenization.special_tokens import SPECIAL_PIECES, VOCAB_FILE

# Source, output, and format of the output.
_CONVERSIONS = (
    ("tf1", "ours", "xlnet"),
    ("ours", "hf", "hf"),
    ("hf", "ours_again", "xlnet"),
    ("ours_again", "tf1_again", "tf1"),
)


def main() -> None:
    flags = parse(__doc__, config=flag("configs/large.yaml", "configuration of the model"))
    config = XLNetConfig.load(flags.config)
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, "tf1"))
        vocab_file = os.path.join(folder, VOCAB_FILE)
        write_vocabulary(vocab_file, config.model.vocab_size)
        weights = Weights(random_source(folder, config), "tf1")
        write_tf1(os.path.join(folder, "tf1"), weights, vocab_file)
        for source, output, form in _CONVERSIONS:
            paths = f"--source={folder}/{source}", f"--output={folder}/{output}"
            seconds, gigabytes = run_xlnet("convert", *paths, f"--to={form}")
            results[f"{source} to {output}"] = {"seconds": seconds, "gigabytes": gigabytes}
            print(f"{source} to {output}: {seconds} s, {gigabytes} GB", file=sys.stderr)
            shutil.rmtree(os.path.join(folder, source))
    print(json.dumps(results))


def random_source(folder: str, config: XLNetConfig) -> Source:
    """Random weights in place of those of a model directory."""
    shapes, random = shapes_of(config), np.random.default_rng(0)

    def read(name: str) -> np.ndarray:
        return random.standard_normal(shapes[name], np.float32)

    return Source("xlnet", folder, config, shapes, read)


def write_vocabulary(path: str, size: int) -> None:
    """Writes a SentencePiece word model whose words are numbers."""
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=map(str, range(size)),
        model_prefix=path.removesuffix(".model"),
        model_type="word",
        vocab_size=size,
        control_symbols=[*SPECIAL_PIECES[3:]],
        minloglevel=2,
    )


if __name__ == "__main__":
    main()
