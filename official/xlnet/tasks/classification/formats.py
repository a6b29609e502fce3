"""Heads of classification, multi-label classification and regression in other formats."""

from __future__ import annotations

import sys

from official.xlnet.checkpoints.convert.head_format import (
    HeadFormat,
    with_summary,
)
from official.xlnet.configs.registry import FORMATS
from official.xlnet.configs.validation import require

_SEQUENCE = "XLNetForSequenceClassification"


@FORMATS.register("classification")
class ClassificationFormat(HeadFormat):
    """Classes are numbered in the TF1 release."""

    rows = with_summary("SC", "model/classification_{scope}/logit")
    architecture = _SEQUENCE
    problem = "single_label_classification"
    usual_logits = range(2, sys.maxsize)

    @classmethod
    def check(cls, task):
        expected = "summary, as in every other format"
        is_summary = task.answer_module == "summary"
        require(is_summary, "task.answer_module", expected, task.answer_module)


@FORMATS.register("multi_label")
class MultiLabelFormat(HeadFormat):
    """The TF1 release has no such head."""

    rows = with_summary("SC", None)
    architecture = _SEQUENCE
    problem = "multi_label_classification"


@FORMATS.register("regression")
class RegressionFormat(HeadFormat):
    """Mean and scale of the labels are in the last layer."""

    rows = with_summary("S1", "model/regression_{scope}/logit")
    architecture = _SEQUENCE
    problem = "regression"
    usual_logits = range(1, 2)
    hf_labels = ("LABEL_0",)
