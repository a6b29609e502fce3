"""The tasks by the names that `config.task.name` gives them."""

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
    """The class of a task; `ConfigError` where there is none of that name."""
    return TASKS[name]
