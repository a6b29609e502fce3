"""Heads of classification, multi-label classification and regression in other formats."""

from __future__ import annotations

import sys

from official.xlnet.checkpoints.convert.head_format import HeadFormat, with_summary
from official.xlnet.configs.registry import HEAD_FORMATS

_SEQUENCE = "XLNetForSequenceClassification"  # HF's class.

HEAD_FORMATS["classification"] = HeadFormat(
    rows=with_summary("SC", "model/classification_{scope}/logit"),
    architecture=_SEQUENCE,
    problem="single_label_classification",
    usual_logits=range(2, sys.maxsize),
)
HEAD_FORMATS["multi_label"] = HeadFormat(  # The TF1 release has no such head.
    rows=with_summary("SC", None),
    architecture=_SEQUENCE,
    problem="multi_label_classification",
)
HEAD_FORMATS["regression"] = HeadFormat(  # Mean and scale of the labels are in the last layer.
    rows=with_summary("S1", "model/regression_{scope}/logit"),
    architecture=_SEQUENCE,
    problem="regression",
    usual_logits=range(1, 2),
    hf_labels=("LABEL_0",),
)
