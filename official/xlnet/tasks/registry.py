"""The tasks by the names that `config.task.name` gives them."""

from __future__ import annotations

from official.xlnet.errors import ConfigError
from official.xlnet.tasks.multiple_choice import MultipleChoice
from official.xlnet.tasks.multitask import MultiTask
from official.xlnet.tasks.question_answering import QuestionAnswering
from official.xlnet.tasks.ranking import Ranking
from official.xlnet.tasks.task import Task
from official.xlnet.tasks.text_classification import Classification, MultiLabel, Regression
from official.xlnet.tasks.token_classification import TokenClassification

TASKS: dict[str, type[Task]] = {
    "classification": Classification,
    "multi_label": MultiLabel,
    "regression": Regression,
    "multiple_choice": MultipleChoice,
    "question_answering": QuestionAnswering,
    "token_classification": TokenClassification,
    "ranking": Ranking,
    "multitask": MultiTask,
}


def task_class(name: str) -> type[Task]:
    """The class of a task; `ConfigError` where there is none of that name."""
    if name not in TASKS:
        raise ConfigError(f"task.name: expected one of {', '.join(TASKS)}, got {name!r}")
    return TASKS[name]
