"""Counts of the prediction targets in the first windows of a data set."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from absl import logging

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.sections import ObjectiveSections
from official.xlnet.data.first_windows import first_windows
from official.xlnet.data.record_features import load_data_tokenizer
from official.xlnet.data.schema import Manifest
from official.xlnet.modeling.objectives import create_objective

_NUM_WINDOWS = 256  # Windows that are read, however many lanes there are.
_NUM_ROWS = 64  # Windows that are counted at once.
_ENOUGH = 0.95  # Share of the requested targets; words rarely fill the budget to the last token.


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
      config: the experiment configuration; `model.vocab_size` is set to match the data set.
      data_dir: data set directory.

    Returns:
      `targets_per_window`, the mean number of targets, and `windows_without_targets`, the share of
      windows that have none.

    Raises:
      DataError: the manifest or the vocabulary of the data set cannot be read.
    """
    manifest = Manifest.load(data_dir)
    config.model.fit_vocabulary(manifest.vocab_size, data_dir)
    tokenizer = load_data_tokenizer(manifest, data_dir)
    windows = first_windows(data_dir, manifest, _NUM_WINDOWS, tokenizer, config.data.phrases)
    sections = ObjectiveSections.of(config)
    count = count_targets(windows.rebatch(_NUM_ROWS), sections)
    warn_of_few_targets(count, sections)
    return {
        "targets_per_window": round(count.mean, 2),
        "windows_without_targets": round(count.without, 4),
    }


def count_targets(
    batches: Iterable[dict[str, tf.Tensor]], sections: ObjectiveSections
) -> TargetCount:
    """Counts the targets in the windows of batches.

    Args:
      batches: batches, as `pretraining_dataset` yields them.
      sections: sections of the experiment.
    """
    masks = [create_objective(sections)(batch).mask_BP for batch in batches]
    count_B = np.concatenate([tf.reduce_sum(mask_BP, axis=1) for mask_BP in masks])
    return TargetCount(float(count_B.mean()), float(np.mean(count_B == 0)), masks[0].shape[1])


def warn_of_few_targets(count: TargetCount, sections: ObjectiveSections) -> None:
    """Logs a warning that says what to do, if there are fewer targets than asked for.

    Args:
      count: the number of targets of some windows.
      sections: sections of the experiment.
    """
    if sections.objective.predicts_all or count.mean >= _ENOUGH * count.wanted:
        return
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
