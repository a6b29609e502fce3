"""`xlnet prepare`: also reads the settings of any model, and counts prediction targets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from official.xlnet.checkpoints.any_format import load_config
from official.xlnet.configs.experiment import recipe_path
from official.xlnet.files import file_system


def run(prepare: Callable[..., dict[str, Any]], **arguments: Any) -> dict[str, Any]:
    """Returns the counts of the data set.

    If it is not in a bucket, also `targets_per_window`, the mean number of tokens that the
    configuration predicts in a window, and `windows_without_targets`, the share of windows in which
    it predicts none.
    """
    config = load_config(recipe_path(arguments["config"]), arguments.pop("set", ()))
    counts = prepare(**{**arguments, "config": config})
    if file_system.is_remote(arguments["output"]):  # Only a copy of all records could be read.
        return counts
    from official.xlnet.training.target_counts import targets_per_window

    return {**counts, **targets_per_window(config, arguments["output"])}
