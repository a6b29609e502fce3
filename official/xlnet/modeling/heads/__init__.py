"""Heads: layers from the encoder's vectors to the outputs of a task, and their losses."""

from __future__ import annotations

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.errors import ConfigError
from official.xlnet.modeling.heads.base import Head
from official.xlnet.modeling.heads.classification import (
    ClassificationHead,
    MultiLabelHead,
    RegressionHead,
)
from official.xlnet.modeling.heads.multiple_choice import MultipleChoiceHead
from official.xlnet.modeling.heads.multitask import MultiTaskHead
from official.xlnet.modeling.heads.question_answering import QuestionAnsweringHead
from official.xlnet.modeling.heads.ranking import KernelRankingHead, SummaryRankingHead
from official.xlnet.modeling.heads.token_classification import TokenClassificationHead

KINDS = (
    "classification",
    "multi_label",
    "regression",
    "multiple_choice",
    "question_answering",
    "token_classification",
    "ranking",
    "multitask",
)


def create_head(config: XLNetConfig) -> Head:
    """The head of `config.task`.

    Raises:
      ConfigError: there is no such kind of task, or its labels are missing.
    """
    task = config.task
    if task.name in ("classification", "multi_label", "token_classification"):
        if not task.labels:
            raise ConfigError(f"task.labels: expected the classes of {task.name}, got none")
        head = {
            "classification": ClassificationHead,
            "multi_label": MultiLabelHead,
            "token_classification": TokenClassificationHead,
        }[task.name]
        return head(config, len(task.labels), name="head")
    if task.name == "multitask":
        # `labels` holds the classes of all subtasks, each as `subtask/class`.
        heads = {}
        for subtask in task.subtasks:
            num_labels = sum(label.startswith(f"{subtask}/") for label in task.labels)
            if num_labels:
                heads[subtask] = ClassificationHead(config, num_labels, name=subtask)
            else:
                heads[subtask] = RegressionHead(config, name=subtask)
        return MultiTaskHead(config, heads, name="head")
    if task.name == "ranking":
        kinds = {"kernel": KernelRankingHead, "summary": SummaryRankingHead}
        return kinds[task.scoring](config, name="head")
    plain = {
        "regression": RegressionHead,
        "multiple_choice": MultipleChoiceHead,
        "question_answering": QuestionAnsweringHead,
    }
    if task.name not in plain:
        raise ConfigError(f"task.name: expected one of {', '.join(KINDS)}, got {task.name!r}")
    return plain[task.name](config, name="head")
