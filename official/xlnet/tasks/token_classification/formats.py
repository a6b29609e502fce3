"""Heads of token classification in other formats."""

from __future__ import annotations

from official.xlnet.checkpoints.convert.head_format import HeadFormat, dense
from official.xlnet.configs.registry import HEAD_FORMATS

HEAD_FORMATS["token_classification"] = HeadFormat(  # The TF1 release has no such head.
    rows=dense("head/logits", "DC", None, "classifier"), architecture="XLNetForTokenClassification"
)
