"""The sections of an experiment that an objective or a head reads."""

from __future__ import annotations

import dataclasses
from typing import Any

from official.xlnet.configs.data import DataConfig
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.model import ModelConfig
from official.xlnet.configs.objective import ObjectiveConfig
from official.xlnet.configs.task import TaskConfig


@dataclasses.dataclass(frozen=True)
class ObjectiveSections:
    """Sections that a pre-training objective reads.

    Attributes:
      model: hyperparameters of the network.
      data: windows, and the sampling of targets.
      objective: the objective.
      seed: random seed of targets, factorization orders and corruption.

    Example:
      >>> ObjectiveSections.of(XLNetConfig()).objective.kind
      'permutation'
    """

    model: ModelConfig
    data: DataConfig
    objective: ObjectiveConfig
    seed: int

    @classmethod
    def of(cls, config: XLNetConfig | dict[str, Any]) -> ObjectiveSections:
        """Takes the sections from an experiment, or from its dictionary."""
        config = XLNetConfig.of(config)
        return cls(config.model, config.data, config.objective, config.training.seed)

    def as_dict(self) -> dict[str, Any]:
        """Returns the dictionary of an experiment with these sections."""
        sections = {name: getattr(self, name).as_dict() for name in ("model", "data", "objective")}
        return {**sections, "training": {"seed": self.seed}}


@dataclasses.dataclass(frozen=True)
class HeadSections:
    """Sections that the head of a task reads.

    Attributes:
      model: hyperparameters of the network.
      task: the task.
    """

    model: ModelConfig
    task: TaskConfig

    def as_dict(self) -> dict[str, Any]:
        """Returns the dictionary of an experiment with these sections."""
        return {"model": self.model.as_dict(), "task": self.task.as_dict()}
