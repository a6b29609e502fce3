"""Text classification, multi-label classification and regression, and their known data sets."""

from __future__ import annotations

from typing import Any

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
