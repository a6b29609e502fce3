"""Keys of the section `task` that several tasks have, but not all."""

from __future__ import annotations

from typing import Annotated

from official.xlnet.configs.base import register_settings
from official.xlnet.configs.key_marks import FROM_DATA, OF_HEAD, NewRuns, UnreadWith
from official.xlnet.configs.registry import ANSWER_MODULES
from official.xlnet.configs.task import TaskConfig
from official.xlnet.configs.validation import COUNT, RATE, Range, require
from official.xlnet.files.schema import OneOf

_UNREAD_WITHOUT_CLASSES = UnreadWith("name", ("regression", "multi_label"))


@register_settings("task")
class LabelConfig(TaskConfig):
    """Tasks that predict classes or numbers of texts.

    Attributes:
      label_smoothing: probability mass of the target distribution that is spread over all classes
        in the loss of classes.
      target_means: for predicted numbers, the mean of the training labels; in a task of several
        data sets, the mean of each (0 where it has classes); empty: computed from the training
        data. The head computes `target_scale` · z + `target_mean`, and its loss is computed on z.
      target_scales: their standard deviations; `[1]`, with `target_means: [0]`, trains on the
        labels as they are.
    """

    label_smoothing: Annotated[float, RATE, _UNREAD_WITHOUT_CLASSES] = 0.0
    target_means: Annotated[tuple[float, ...], FROM_DATA, OF_HEAD] = ()
    target_scales: Annotated[tuple[float, ...], FROM_DATA, OF_HEAD] = ()

    def label_mean_and_scale(self) -> tuple[float, float]:
        values = (*self.target_means[:1], *self.target_scales[:1])
        return values if len(values) == 2 else super().label_mean_and_scale()

    def check(self) -> None:
        super().check()
        num_parts = len(self.as_chosen().text_columns_of_parts()) or 1
        require(
            len(self.target_means) in (0, num_parts),
            "task.target_means",
            f"{num_parts} numbers or none",
            self.target_means,
        )
        has_scales = len(self.target_scales) == len(self.target_means)
        require(
            has_scales and all(scale > 0 for scale in self.target_scales),
            "task.target_scales",
            "a number above 0 for each of task.target_means",
            self.target_scales,
        )


@register_settings("task")
class AnswerModuleConfig(LabelConfig):
    """Tasks that predict one class of each text.

    Attributes:
      answer_module: the head: `summary` (dense layer on the sequence summary) or the name of an
        extension. In a task of several data sets, only those with two texts and classes have an
        extension's head.
    """

    answer_module: Annotated[str, ANSWER_MODULES, _UNREAD_WITHOUT_CLASSES, OF_HEAD] = "summary"


@register_settings("task")
class QueryConfig(TaskConfig):
    """Tasks about a question or query.

    Attributes:
      query_length: maximum length of a question or query, in tokens.
    """

    needs_names = True

    query_length: Annotated[int, COUNT] = 64


@register_settings("task")
class CandidatesConfig(QueryConfig):
    """Tasks that rank the documents of a query.

    Attributes:
      num_candidates: number of documents of a query that the loss compares: one and, if there are
        so many, `num_candidates` - 1 less relevant ones; 2: pairs.
      cutoff: rank cutoff k of NDCG@k and ERR@k.
      gain: gain of a document of grade g in NDCG: `linear`, g, as in trec_eval, the default of
        `xlnet finetune`; or `exponential`, 2^g - 1, as in gdeval, LETOR and model directories
        without this key. ERR always has 2^g - 1.
      highest_grade: highest possible relevance grade, for ERR@k; 0: the highest in the data.
    """

    num_candidates: Annotated[int, Range(2, 1000)] = 2
    cutoff: Annotated[int, COUNT] = 20
    gain: Annotated[str, OneOf(("linear", "exponential")), NewRuns("linear")] = "exponential"
    highest_grade: Annotated[int, Range(0, 100)] = 0
