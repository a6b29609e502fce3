"""`task` section of the configuration: the fine-tuning task."""

from __future__ import annotations

import dataclasses
import math

from official.xlnet.configs.base import Section
from official.xlnet.configs.validation import (
    COUNT,
    COUNT_OR_NONE,
    FINITE,
    NOT_NEGATIVE,
    RATE,
    Range,
    require,
)


@dataclasses.dataclass
class TaskConfig(Section):
    """Fine-tuning task: data format, input length, head and metric.

    Attributes:
      name: task type, e.g. `classification`; empty for a pre-trained model.
      labels: class names in the order of the logits; empty: inferred from the training data.
      scope: data set name in variable names of the TF1 release, e.g. `mnli`.
      subtasks: for `multitask`, names of the data sets in the order of the heads.
      regressions: for `multitask`, names of own data sets whose labels are numbers.
      columns: column names of a table without a header row.
      text_columns: text columns, each encoded as its own segment; empty: all columns but the
        label and ids. For `multitask`, `NAME/COLUMN` is a column of one data set.
      label_column: name of the label column; for `multitask`, of all data sets of its own.
      target_means: for `regression`, the mean of the training labels, and for `multitask` that of
        each data set (0 where it has classes); empty: computed from the training data. The head
        computes `target_scale` · z + `target_mean`, and its loss is that of z.
      target_scales: their standard deviations; `[1]`, with `target_means: [0]`, trains on the
        labels as they are.
      max_length: maximum sequence length in tokens, T; longer inputs are truncated.
      truncation_side: side from which long texts are truncated: `right` or `left`.
      num_buckets: number of length buckets that inputs are padded to: T, T/2, T/4, …
      summary: sequence summary: `last` (CLS), `first`, `mean` or `attn`.
      metric: metric that selects the best checkpoint; empty: the task's default metric.
      patience: number of evaluations without improvement before early stopping; 0 disables it.
      class_weights: `none`, or `balanced` (loss weights inversely proportional to class counts).
      label_smoothing: probability mass of the target distribution that is spread over all classes
        in the loss of `classification` and `multitask`.
      answer_module: for `classification`, `summary` (dense layer on the sequence summary) or `san`
        (stochastic answer network of MT-DNN, for pairs of texts).
      answer_steps: number of steps of `san`, K.
      answer_dropout: probability that a step of `san` does not count, in training.
      lm_weight: weight λ of the auxiliary language-model loss of GPT: loss of the task plus λ
        times that of the text from left to right; 0: none.
      epochs: number of epochs; 0: train for `training.num_steps` steps.
      freeze_encoder: whether the encoder is frozen and only the head is trained.
      long_texts: handling of texts longer than `max_length`: `truncate`, `windows` (overlapping
        windows whose logits are pooled) or `memory` (segments with recurrent memory).
      window_stride: stride between windows of a long text or paragraph, in tokens.
      max_windows: maximum number of windows per text.
      pooling: pooling over the windows or segments of a long text: `mean` or `max`.
      pooled_segments: with `long_texts: memory`, the segments that are pooled: `all`, the default
        of `xlnet finetune`, or only the `last`, as in model directories without this key.
      query_length: maximum length of a question or query, in tokens.
      answer_length: maximum length of an answer, in tokens.
      start_n_top: beam size over answer start positions.
      end_n_top: beam size over answer end positions, per start position.
      n_best: number of answers in a prediction.
      null_threshold: "no answer" is predicted if its log odds exceed this threshold.
      num_choices: number of choices of a multiple-choice question.
      scoring: for `ranking`, `kernel` (kernel pooling over token similarities) or `summary`
        (query and document encoded together).
      num_candidates: for `ranking`, number of documents of a query that the loss compares: one
        and, if there are so many, `num_candidates` - 1 less relevant ones; 2: pairs.
      cutoff: rank cutoff k of NDCG@k and ERR@k.
      highest_grade: highest possible relevance grade, for ERR@k; 0: the highest in the data.
      rerank_depth: number of documents of a TREC run that are reranked per query; 0: all.
    """

    section = "task"
    allowed = {
        "max_length": COUNT,
        "truncation_side": ("right", "left"),
        "num_buckets": COUNT,
        "summary": ("last", "first", "mean", "attn"),
        "patience": COUNT_OR_NONE,
        "class_weights": ("none", "balanced"),
        "label_smoothing": RATE,
        "epochs": NOT_NEGATIVE,
        "long_texts": ("truncate", "windows", "memory"),
        "window_stride": COUNT,
        "max_windows": COUNT,
        "pooling": ("mean", "max"),
        "pooled_segments": ("all", "last"),
        "query_length": COUNT,
        "answer_length": COUNT,
        "start_n_top": COUNT,
        "end_n_top": COUNT,
        "n_best": COUNT,
        "null_threshold": FINITE,
        "num_choices": Range(2, 1000),
        "answer_module": ("summary", "san"),
        "answer_steps": Range(1, 100),
        "answer_dropout": RATE,
        "lm_weight": NOT_NEGATIVE,
        "scoring": ("kernel", "summary"),
        "num_candidates": Range(2, 1000),
        "cutoff": COUNT,
        "highest_grade": Range(0, 100),
        "rerank_depth": COUNT_OR_NONE,
    }

    name: str = ""
    labels: tuple[str, ...] = ()
    scope: str = ""
    subtasks: tuple[str, ...] = ()
    regressions: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    text_columns: tuple[str, ...] = ()
    label_column: str = "label"
    target_means: tuple[float, ...] = ()
    target_scales: tuple[float, ...] = ()
    max_length: int = 128
    truncation_side: str = "right"
    num_buckets: int = 3
    summary: str = "last"
    metric: str = ""
    patience: int = 0
    class_weights: str = "none"
    label_smoothing: float = 0.0
    answer_module: str = "summary"
    answer_steps: int = 5
    answer_dropout: float = 0.1
    lm_weight: float = 0.0
    epochs: float = 0.0
    freeze_encoder: bool = False
    long_texts: str = "truncate"
    window_stride: int = 64
    max_windows: int = 4
    pooling: str = "mean"
    pooled_segments: str = "last"
    query_length: int = 64
    answer_length: int = 64
    start_n_top: int = 5
    end_n_top: int = 5
    n_best: int = 20
    null_threshold: float = 0.0
    num_choices: int = 4
    scoring: str = "kernel"
    num_candidates: int = 2
    cutoff: int = 20
    highest_grade: int = 0
    rerank_depth: int = 0

    def check(self) -> None:
        """Raises `ConfigError` if a value is out of range or values are incompatible."""
        super().check()
        require(
            len(self.target_means) in (0, len(self.subtasks) or 1)
            and all(map(math.isfinite, self.target_means)),
            "task.target_means",
            f"{len(self.subtasks) or 1} finite numbers or none",
            self.target_means,
        )
        require(
            len(self.target_scales) == len(self.target_means)
            and all(0 < scale < math.inf for scale in self.target_scales),
            "task.target_scales",
            "a number above 0 for each of task.target_means",
            self.target_scales,
        )

    def target(self, number: int = 0) -> tuple[float, float]:
        """Returns mean and scale of the labels of a regression; 0 and 1 if they are unscaled.

        Args:
          number: index of the subtask, for `multitask`.
        """
        if not self.target_means:
            return 0.0, 1.0
        return self.target_means[number], self.target_scales[number]

    def columns_of(self, subtask: str) -> tuple[str, ...]:
        """Returns the text columns of a subtask: those of `text_columns` that begin with its name.

        Args:
          subtask: name of the subtask.

        Example:
          >>> TaskConfig(text_columns=("mnli/sentence1", "sst2/sentence")).columns_of("sst2")
          ('sentence',)
        """
        prefix = f"{subtask}/"
        columns = [column for column in self.text_columns if column.startswith(prefix)]
        return tuple(column.removeprefix(prefix) for column in columns)
