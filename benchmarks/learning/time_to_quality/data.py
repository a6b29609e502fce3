"""The data of all contestants: our records, and the same windows as an array for HF."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

VOCAB_SIZES = {"tiny": 4000, "small": 8000}  # Of each recipe.
WINDOWS = "windows.npy"
# The targets of evaluation, whatever a recipe trains on: HF's collator has a third, too.
EVALUATION: dict[str, Any] = {
    "num_predict": 42,
    "target_ratio": 3.0,
    "target_unit": "word",
    "max_span": 5,
}


def config_of(recipe: str) -> str:
    """Path of a recipe."""
    return f"configs/{recipe}.yaml"


def prepare_data(text: str, recipe: str, output: str) -> None:
    """Trains the vocabulary and writes records and windows, unless they are there.

    Args:
      text: text file.
      recipe: a key of `VOCAB_SIZES`.
      output: directory for `vocab`, `data` and `windows.npy` int32 [n, T], the windows of
        forward text.
    """
    from data_prep.corpus.vocabulary import train_vocabulary
    from data_prep.pipelines.prepare import prepare
    from official.xlnet.configs.experiment import XLNetConfig
    from official.xlnet.data.pretraining_dataset import pretraining_dataset

    windows = os.path.join(output, WINDOWS)
    if os.path.exists(windows):
        return
    config = XLNetConfig.load(config_of(recipe))
    vocab, data = (os.path.join(output, name) for name in ("vocab", "data"))
    train_vocabulary([text], vocab, config.model.vocab_size or VOCAB_SIZES[recipe])
    prepare([text], vocab, config, data)
    rows = [
        batch["token_ids"][~batch["is_reversed"]]
        for batch in pretraining_dataset(data, 16, "train", epochs=1).as_numpy_iterator()
    ]
    np.save(windows, np.concatenate(rows))
