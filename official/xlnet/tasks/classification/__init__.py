"""Text classification, multi-label classification and regression, and their known data sets."""

from __future__ import annotations

from typing import Annotated, Any

from official.xlnet.configs.base import register_settings
from official.xlnet.configs.key_marks import UnreadWith
from official.xlnet.configs.validation import require
from official.xlnet.files.schema import OneOf
from official.xlnet.tasks.settings import AnswerModuleConfig

NAMES = ("classification", "multi_label", "regression")
INPUTS = ()  # Texts of any names.
_PAIR = ("sentence1", "sentence2")
_NLI = ("contradiction", "entailment", "neutral")

DATASETS: dict[str, dict[str, Any]] = {
    # The nine GLUE tasks; files `train.tsv` and `dev.tsv` of the official download.
    "cola": {
        "name": "classification",
        "columns": ("source", "label", "star", "sentence"),
        "text_columns": ("sentence",),
        "labels": ("0", "1"),
        "metric": "matthews",
    },
    "sst2": {
        "name": "classification",
        "text_columns": ("sentence",),
        "labels": ("0", "1"),
        "metric": "accuracy",
    },
    "mrpc": {
        "name": "classification",
        "text_columns": ("#1 String", "#2 String"),
        "label_column": "Quality",
        "labels": ("0", "1"),
        "metric": "accuracy",
    },
    "stsb": {
        "name": "regression",
        "text_columns": _PAIR,
        "label_column": "score",
        "metric": "pearson",
    },
    "qqp": {
        "name": "classification",
        "text_columns": ("question1", "question2"),
        "label_column": "is_duplicate",
        "labels": ("0", "1"),
        "metric": "accuracy",
    },
    "mnli": {
        "name": "classification",
        "text_columns": _PAIR,
        "label_column": "gold_label",
        "labels": _NLI,
        "metric": "accuracy",
    },
    "qnli": {
        "name": "classification",
        "text_columns": ("question", "sentence"),
        "labels": ("entailment", "not_entailment"),
        "metric": "accuracy",
    },
    "rte": {
        "name": "classification",
        "text_columns": _PAIR,
        "labels": ("entailment", "not_entailment"),
        "metric": "accuracy",
    },
    "wnli": {
        "name": "classification",
        "text_columns": _PAIR,
        "labels": ("0", "1"),
        "metric": "accuracy",
    },
    # Folders pos/ and neg/, with one file per review.
    "imdb": {"name": "classification", "labels": ("neg", "pos"), "metric": "accuracy"},
    # CSV files without a header.
    "yelp2": {"name": "classification", "columns": ("label", "text"), "labels": ("1", "2")},
    "yelp5": {
        "name": "classification",
        "columns": ("label", "text"),
        "labels": ("1", "2", "3", "4", "5"),
    },
    "ag_news": {
        "name": "classification",
        "columns": ("label", "title", "text"),
        "labels": ("1", "2", "3", "4"),
    },
    "dbpedia": {
        "name": "classification",
        "columns": ("label", "title", "text"),
        "labels": tuple(str(n) for n in range(1, 15)),
    },
    "amazon2": {
        "name": "classification",
        "columns": ("label", "title", "text"),
        "labels": ("1", "2"),
    },
    "amazon5": {
        "name": "classification",
        "columns": ("label", "title", "text"),
        "labels": ("1", "2", "3", "4", "5"),
    },
}


@register_settings("task", name=NAMES)
class ClassificationConfig(AnswerModuleConfig):
    """Classes or numbers of texts.

    Attributes:
      scope: data set name in variable names of the TF1 release, e.g. `mnli`.
      both_orders: whether texts A and B are read as `A | B` and as `B | A`, as in GPT's similarity
        tasks: logits = W · (summary(A | B) + summary(B | A)) / 2 + b.
      class_weights: `none`, or `balanced` (loss weights inversely proportional to class counts).
      label_separator: what separates the classes of a `multi_label` row in a table.
    """

    has_text_columns = True

    scope: str = ""
    both_orders: bool = False
    class_weights: Annotated[
        str, OneOf(("none", "balanced")), UnreadWith("name", ("regression", "multi_label"))
    ] = "none"
    label_separator: Annotated[str, UnreadWith("name", ("regression", "classification"))] = ","

    @property
    def has_number_labels(self) -> bool:  # type: ignore[override]
        return self.name == "regression"

    def text_orders(self, num_texts):
        (order,) = super().text_orders(num_texts)
        return [order, order[::-1]] if self.both_orders else [order]

    def check(self) -> None:
        super().check()
        if not self.both_orders:
            return
        needed = {"long_texts": "truncate", "pooling": "mean", "answer_module": "summary"}
        for key, expected in needed.items():
            value = getattr(self, key)
            require(value == expected, f"task.{key}", f"{expected} with task.both_orders", value)
        is_pair = len(self.text_columns) in (0, 2)
        expected = "two with task.both_orders"
        require(is_pair, "task.text_columns", expected, self.text_columns)
