"""Registry of tasks by `config.task.name`."""

from __future__ import annotations

# Imported for the tasks that they register.
from official.xlnet.tasks import (  # noqa: F401
    multiple_choice,
    multitask,
    question_answering,
    ranking,
    text_classification,
    token_classification,
)
from official.xlnet.tasks.task import TASKS, Task, register_task

__all__ = ["TASKS", "register_task", "task_class"]


def task_class(name: str) -> type[Task]:
    """Returns the class of a task.

    Args:
      name: value of `task.name`.

    Raises:
      ConfigError: there is no task of that name.

    Example:
      >>> task_class("ranking").__name__
      'Ranking'
    """
    return TASKS[name]
