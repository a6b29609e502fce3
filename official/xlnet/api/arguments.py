"""Types of arguments that are checked by what they name: models, overrides and tasks.

The rule of models has `looks_up`: it is checked after all others, see `check_arguments`.
"""

from __future__ import annotations

import dataclasses
from typing import Annotated

from official.xlnet.configs.registry import task_settings
from official.xlnet.files import file_system
from official.xlnet.files.arguments import Path


@dataclasses.dataclass(frozen=True)
class _IsModel:
    """Rule: something is at the path of a model or recipe; URLs are looked up when it is read."""

    looks_up = True

    def check(self, path: str, where: str) -> None:
        from official.xlnet.configs.experiment import require_model

        if not file_system.is_remote(path):
            require_model(path)


@dataclasses.dataclass(frozen=True)
class _IsOverride:
    """Rule: `key=value` with a known key and a value of its type; see `XLNetConfig.load`."""

    def check(self, override: str, where: str) -> None:
        from official.xlnet.configs.experiment import XLNetConfig

        XLNetConfig().set(override)


@dataclasses.dataclass(frozen=True)
class _IsTask:
    """Rule: the name of a task type or data set."""

    def check(self, name: str, where: str) -> None:
        task_settings(name)


Model = Annotated[Path, _IsModel()]
Override = Annotated[str, _IsOverride()]
TaskName = Annotated[str, _IsTask()]
