"""The number of prediction targets that windows have, and a warning where it falls short.

Targets are whole words (`data.target_unit=word`). Where words are many tokens long, few of them fit
into the budget of `data.num_predict` tokens, and a step learns from fewer targets than asked for.
"""

from __future__ import annotations

import copy

import tensorflow as tf
from absl import logging

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.data.pretraining_dataset import pretraining_dataset
from official.xlnet.data.schema import Manifest
from official.xlnet.modeling.objectives import create_objective
from official.xlnet.training.unigram_baseline import split_batch_size

_NUM_ROWS = 64  # Lanes that are read, and windows of each.
_NUM_WINDOWS = 4
_ENOUGH = 0.95  # Of the targets asked for; words rarely fill the budget to the last token.


def targets_per_window(config: XLNetConfig, data_dir: str) -> float:
    """Mean number of targets in the first windows of a data set; warns if they are few.

    Args:
      config: the experiment configuration.
      data_dir: data set directory.

    Raises:
      DataError: the data set cannot be read, or does not match the configuration.
    """
    config = copy.deepcopy(config)
    config.model.fit_vocabulary(Manifest.load(data_dir).vocab_size, data_dir)
    batch_size = split_batch_size(data_dir, "train", _NUM_ROWS)
    data = pretraining_dataset(data_dir, batch_size, config=config, epochs=1)
    counts = [count_targets(batch, config) for batch in data.take(_NUM_WINDOWS)]
    drawn = sum(drawn for drawn, _ in counts) / len(counts)
    warn_of_few_targets(drawn, counts[0][1], config)
    return round(drawn, 2)


def count_targets(batch: dict[str, tf.Tensor], config: XLNetConfig) -> tuple[float, int]:
    """The mean number of targets in the windows of a batch, and the number asked for.

    Args:
      batch: a batch, as `pretraining_dataset` yields it.
      config: the experiment configuration.
    """
    mask_BP = create_objective(config)(batch).mask_BP
    return float(tf.reduce_mean(tf.reduce_sum(mask_BP, axis=1))), mask_BP.shape[1]


def warn_of_few_targets(drawn: float, wanted: int, config: XLNetConfig) -> None:
    """Logs a warning that says what to do, if there are fewer targets than asked for.

    Args:
      drawn: mean number of targets of a window.
      wanted: number of targets asked for.
      config: the experiment configuration.
    """
    if config.objective.kind == "causal" or drawn >= _ENOUGH * wanted:
        return  # A causal model predicts every token.
    advice = f"data.num_predict={max(1, int(drawn))}, which costs less"
    if config.data.target_unit == "word":
        advice = f"data.target_unit=token, as words of this text are long, or {advice}"
    logging.warning(
        "targets: %.1f tokens of a window are predicted, but data.num_predict asks for %d: set %s",
        drawn,
        wanted,
        advice,
    )
