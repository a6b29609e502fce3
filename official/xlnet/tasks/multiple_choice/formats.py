"""Heads of multiple choice in other formats."""

from __future__ import annotations

from official.xlnet.checkpoints.convert.head_format import HeadFormat, with_summary
from official.xlnet.configs.registry import HEAD_FORMATS

HEAD_FORMATS["multiple_choice"] = HeadFormat(
    rows=with_summary("S1", "logits/dense"), architecture="XLNetForMultipleChoice"
)
