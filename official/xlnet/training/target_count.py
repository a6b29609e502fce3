"""The number of prediction targets that windows have, and a warning where it falls short.

Targets are whole words (`data.target_unit=word`). Where words are many tokens long, few of them fit
into the budget of `data.num_predict` tokens, and a step learns from fewer targets than asked for.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import tensorflow as tf
from absl import logging

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.sections import ObjectiveSections
from official.xlnet.data.pretraining_dataset import Records
from official.xlnet.data.schema import Manifest
from official.xlnet.modeling.objectives import create_objective

_NUM_WINDOWS = 256  # Windows that are read, however many lanes there are.
_NUM_ROWS = 64  # Windows that are counted at once.
_ENOUGH = 0.95  # Of the targets asked for; words rarely fill the budget to the last token.


class TargetCount(NamedTuple):
    """Number of targets of some windows.

    Attributes:
      mean: mean number of targets of a window.
      without: share of the windows that have no target.
      wanted: number of targets asked for.
    """

    mean: float
    without: float
    wanted: int


def targets_per_window(config: XLNetConfig, data_dir: str) -> dict[str, float]:
    """Counts the targets in the first windows of a data set; warns if they are few.

    Args:
      config: the experiment configuration; `model.vocab_size` is set to that of the data set.
      data_dir: data set directory.

    Returns:
      `targets_per_window`, the mean number of targets, and `windows_without_targets`, the share of
      windows that have none.

    Raises:
      DataError: the data set cannot be read, or does not match the configuration.
    """
    config.model.fit_vocabulary(Manifest.load(data_dir).vocab_size, data_dir)
    records = Records(data_dir, config)
    data = records.first_windows(_NUM_WINDOWS).rebatch(_NUM_ROWS)
    sections = ObjectiveSections.of(config)
    num_windows, counts = zip(
        *((len(batch["token_ids"]), count_targets(batch, sections)) for batch in data), strict=True
    )
    mean, without, _ = np.average(counts, axis=0, weights=num_windows).tolist()
    warn_of_few_targets(TargetCount(mean, without, counts[0].wanted), sections)
    return {"targets_per_window": round(mean, 2), "windows_without_targets": round(without, 4)}


def count_targets(batch: dict[str, tf.Tensor], sections: ObjectiveSections) -> TargetCount:
    """Counts the targets in the windows of a batch.

    Args:
      batch: a batch, as `pretraining_dataset` yields it.
      sections: sections of the experiment.
    """
    mask_BP = create_objective(sections)(batch).mask_BP
    count_B = tf.reduce_sum(mask_BP, axis=1)
    without = tf.reduce_mean(tf.cast(count_B == 0, tf.float32))
    return TargetCount(float(tf.reduce_mean(count_B)), float(without), mask_BP.shape[1])


def warn_of_few_targets(count: TargetCount, sections: ObjectiveSections) -> None:
    """Logs a warning that says what to do, if there are fewer targets than asked for.

    Args:
      count: the number of targets of some windows.
      sections: sections of the experiment.
    """
    if sections.objective.kind == "causal" or count.mean >= _ENOUGH * count.wanted:
        return  # A causal model predicts every token.
    if 1 <= int(count.mean) < count.wanted:
        advice = f"data.num_predict={int(count.mean)}, which costs less"
    else:
        advice = "a larger data.num_predict"
    if sections.data.target_unit == "word":
        advice = f"data.target_unit=token, as words of this text are long, or {advice}"
    share = f" ({count.without:.0%} of the windows have none)" if count.without else ""
    logging.warning(
        "targets: %.1f tokens of a window are predicted%s, but data.num_predict asks for %d: "
        "set %s",
        count.mean,
        share,
        count.wanted,
        advice,
    )
