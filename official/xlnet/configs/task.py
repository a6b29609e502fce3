"""Section `task`: what a fine-tuned model does."""

from __future__ import annotations

import dataclasses

from official.modeling import hyperparams
from official.xlnet.configs.validation import require, require_one_of


@dataclasses.dataclass
class TaskConfig(hyperparams.Config):
    """What a model is fine-tuned for.

    Attributes:
      name: kind of task, e.g. `classification`; empty in a model that was only pre-trained.
      labels: names of the classes, in the order of the logits; empty: those of the training file.
      scope: name of the data set in the TF1 release's names of variables, e.g. `mnli`.
      subtasks: of `multitask`: `NAME` of data sets, in the order of the heads.
      columns: names of the columns of a table that has no header.
      text_columns: columns that hold the texts, each its own segment; empty: all but the label.
      label_column: column that holds the label.
      max_length: tokens T of an input; longer texts are cut.
      truncation_side: the end that a text which is too long loses: `right` or `left`.
      num_buckets: lengths that short inputs are padded to: T, T/2, T/4, …
      summary: which vector stands for an input: `last` (CLS), `first`, `mean` or `attn`.
      metric: figure by which the best checkpoint is chosen; empty: the task's own.
      patience: evaluations without a better figure after which to stop; 0 never stops.
      class_weights: `none`, or `balanced`: every class counts the same in the loss.
      epochs: passes over the training data; 0: `training.num_steps` counts.
      freeze_encoder: whether only the head is trained.
      long_texts: `truncate`, `windows` (pooled) or `memory` (read left to right).
      window_stride: tokens by which the windows of a long text or paragraph advance.
      max_windows: windows that are read of a long text.
      pooling: how the windows of a long text are pooled: `mean` or `max`.
      query_length: tokens of a question, or of a query, that are read.
      answer_length: tokens of the longest answer.
      start_n_top: starts of answers that are tried.
      end_n_top: ends that are tried for each start.
      n_best: answers listed in a prediction.
      null_threshold: log odds of "no answer" above which that is the answer.
      num_choices: options of a multiple-choice question.
      scoring: of `ranking`: `kernel` (pooling of similarities) or `summary` (read together).
      cutoff: k of NDCG@k and ERR@k.
    """

    name: str = ""
    labels: tuple[str, ...] = ()
    scope: str = ""
    subtasks: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    text_columns: tuple[str, ...] = ()
    label_column: str = "label"
    max_length: int = 128
    truncation_side: str = "right"
    num_buckets: int = 3
    summary: str = "last"
    metric: str = ""
    patience: int = 0
    class_weights: str = "none"
    epochs: float = 0.0
    freeze_encoder: bool = False
    long_texts: str = "truncate"
    window_stride: int = 64
    max_windows: int = 4
    pooling: str = "mean"
    query_length: int = 64
    answer_length: int = 64
    start_n_top: int = 5
    end_n_top: int = 5
    n_best: int = 20
    null_threshold: float = 0.0
    num_choices: int = 4
    scoring: str = "kernel"
    cutoff: int = 20

    def check(self) -> None:
        """Raises `ConfigError` where a value is out of range or values contradict each other."""
        for key, allowed in (
            ("summary", ("last", "first", "mean", "attn")),
            ("class_weights", ("none", "balanced")),
            ("truncation_side", ("right", "left")),
            ("long_texts", ("truncate", "windows", "memory")),
            ("pooling", ("mean", "max")),
            ("scoring", ("kernel", "summary")),
        ):
            require_one_of(f"task.{key}", getattr(self, key), allowed)
        for key in (
            *("max_length", "num_buckets", "window_stride", "max_windows", "query_length"),
            *("answer_length", "start_n_top", "end_n_top", "n_best", "cutoff"),
        ):
            require(getattr(self, key) > 0, f"task.{key}", "at least 1", getattr(self, key))
        require(self.num_choices > 1, "task.num_choices", "at least 2", self.num_choices)
        require(self.epochs >= 0, "task.epochs", "0 or more", self.epochs)
