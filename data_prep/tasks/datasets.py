"""Settings of supported fine-tuning data sets, by name.

The names are accepted by `xlnet finetune --task`, like task types. The settings are fields of
`TaskConfig`.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any

from official.xlnet.errors import DataError

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
    "squad": {"name": "question_answering", "metric": "f1"},
    "race": {"name": "multiple_choice", "num_choices": 4},
    "swag": {"name": "multiple_choice", "num_choices": 4},
    "conll2003": {"name": "token_classification"},
    # QNLI as pairwise ranking, as in the paper: the answering sentence should be ranked first.
    "qnli_ranking": {
        "name": "ranking",
        "scoring": "summary",
        "metric": "pair_accuracy",
    },
    # WNLI as pairwise ranking: the right referent of a pronoun should be ranked first.
    "wnli_ranking": {
        "name": "ranking",
        "scoring": "summary",
        "metric": "pair_accuracy",
    },
}


def task_settings(name: str, kinds: Sequence[str]) -> dict[str, Any]:
    """Returns the task settings of a data set or task type.

    Args:
      name: name of a data set or task type.
      kinds: names of the task types.

    Returns:
      Fields of `TaskConfig` by name.

    Raises:
      DataError: the name is unknown.
    """
    if name in DATASETS:
        return dict(DATASETS[name])
    if name in kinds:
        return {"name": name}
    known = [*kinds, *DATASETS]
    nearest = difflib.get_close_matches(name, known, n=1)
    hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
    raise DataError(f"task {name!r}: expected one of {', '.join(known)}{hint}")
