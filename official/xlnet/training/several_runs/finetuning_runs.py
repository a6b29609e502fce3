"""Files of several fine-tuning runs under one directory, of which it keeps the best model.

output/           the model directory of the best run so far
output/FILE       a JSON file: the configuration, and the finished runs with their metrics
output/FOLDER/…   logs and report of each run; its weights only until it is finished
"""

from __future__ import annotations

import dataclasses
import glob
import json
import os
import shutil
from typing import Any

from official.xlnet.configs.experiment import CONFIG_FILE, XLNetConfig
from official.xlnet.errors import ConfigError
from official.xlnet.files.json_files import read_json, write_json
from official.xlnet.files.schema import conform
from official.xlnet.training.finetuning_loop import RUN_DIR

RUNS_FILE = "runs.json"
SEARCH_FILE = "search.json"


@dataclasses.dataclass
class _Runs:
    """Schema of the file."""

    config: dict[str, Any]
    runs: list[dict[str, Any]]


def read_finished(config: XLNetConfig, output: str, name: str) -> list[dict[str, Any]]:
    """Returns the finished runs of a directory.

    Args:
      config: the configuration of the runs.
      output: the directory.
      name: name of the JSON file.

    Raises:
      ConfigError: the directory holds something else, or runs with another configuration.
    """
    path = os.path.join(output, name)
    if not os.path.exists(path):
        if os.path.exists(os.path.join(output, CONFIG_FILE)):
            kind = "repeated runs" if name == RUNS_FILE else "a search"
            raise ConfigError(f"{output}: expected {kind} or nothing, got a model directory")
        return []
    saved = conform(read_json(path), _Runs, path)
    begun_with = XLNetConfig.from_dict(saved.config, path)
    if not begun_with.task.text_columns:  # Earlier versions kept none of several tasks.
        begun_with.task.text_columns = config.task.text_columns
    if _as_json(begun_with) != _as_json(config):
        raise ConfigError(
            f"{output}: expected the configuration of its earlier runs, got another one; choose "
            "another directory"
        )
    return saved.runs


def write_finished(
    config: XLNetConfig, output: str, name: str, finished: list[dict[str, Any]]
) -> None:
    """Writes the finished runs of a directory; see `read_finished`."""
    os.makedirs(output, exist_ok=True)
    write_json(os.path.join(output, name), {"config": _as_json(config), "runs": finished})


def saved_configuration(output: str) -> XLNetConfig | None:
    """Returns the configuration that a run, or several, in a directory began with.

    None if there is no run in the directory.
    """
    for name in (RUNS_FILE, SEARCH_FILE):
        path = os.path.join(output, name)
        if os.path.exists(path):
            return XLNetConfig.from_dict(conform(read_json(path), _Runs, path).config, path)
    has_config = os.path.exists(os.path.join(output, CONFIG_FILE))
    return XLNetConfig.load(output) if has_config else None


def _as_json(config: XLNetConfig) -> Any:
    return json.loads(json.dumps(config.as_dict()))


def publish(directory: str, output: str) -> None:
    """Makes the model of a run that of the output directory."""
    for old in glob.glob(os.path.join(glob.escape(output), "ckpt-*")):
        os.remove(old)
    for entry in os.scandir(directory):
        if entry.is_file():
            shutil.copy2(entry.path, output)


def remove_weights(directory: str) -> None:
    """Removes the weights of a finished run, and the state that it resumes from."""
    shutil.rmtree(os.path.join(directory, RUN_DIR), ignore_errors=True)
    for name in ("ckpt-*", "checkpoint"):
        for path in glob.glob(os.path.join(glob.escape(directory), name)):
            os.remove(path)
