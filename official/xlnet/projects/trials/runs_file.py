"""The JSON file of several runs: the configuration that they began with, and their results."""

from __future__ import annotations

import dataclasses
from typing import Any

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.registry import RUN_FILES
from official.xlnet.files.json_files import read_json
from official.xlnet.files.schema import conform

FOLDS_FILE = "folds.json"
REPEATED_RUNS_FILE = "runs.json"
SEARCH_FILE = "search.json"


@dataclasses.dataclass
class RunsFile:
    """Schema of the file.

    Attributes:
      config: the configuration that all runs began with.
      runs: the finished runs.
    """

    config: dict[str, Any]
    runs: list[dict[str, Any]]


def read_runs_file(path: str) -> RunsFile:
    """Reads the file.

    Raises:
      DataError: the file is damaged.
    """
    return conform(read_json(path), RunsFile, path)


@RUN_FILES.register(FOLDS_FILE)
@RUN_FILES.register(REPEATED_RUNS_FILE)
@RUN_FILES.register(SEARCH_FILE)
def saved_configuration(path: str) -> XLNetConfig:
    """Returns the configuration that the runs of a file began with.

    Args:
      path: path of the file.
    """
    return XLNetConfig.from_dict(read_runs_file(path).config, path)
