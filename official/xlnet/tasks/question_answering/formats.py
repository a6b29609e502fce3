"""Heads of question answering in other formats."""

from __future__ import annotations

from official.xlnet.checkpoints.convert.head_format import HeadFormat, dense
from official.xlnet.checkpoints.convert.variable_map import row
from official.xlnet.configs.registry import HEAD_FORMATS

HEAD_FORMATS["question_answering"] = HeadFormat(
    rows=(
        *dense("head/start_logits", "D1", "start_logits/dense", "start_logits.dense"),
        *dense("head/end_hidden", "ED", "end_logits/dense_0", "end_logits.dense_0"),
        row(
            "head/end_norm/gamma",
            "D",
            "end_logits/LayerNorm/gamma",
            "D",
            "end_logits.LayerNorm.weight",
            "D",
        ),
        row(
            "head/end_norm/beta",
            "D",
            "end_logits/LayerNorm/beta",
            "D",
            "end_logits.LayerNorm.bias",
            "D",
        ),
        *dense("head/end_logits", "D1", "end_logits/dense_1", "end_logits.dense_1"),
        *dense("head/answer_hidden", "ED", "answer_class/dense_0", "answer_class.dense_0"),
        *dense(
            "head/answer_logits", "D1", "answer_class/dense_1", "answer_class.dense_1", bias=False
        ),
    ),
    architecture="XLNetForQuestionAnswering",
    hf_settings={key: f"task.{key}" for key in ("start_n_top", "end_n_top")},
)
HEAD_FORMATS["question_answering_simple"] = HeadFormat(
    rows=dense("head/span_logits", "D2", None, "qa_outputs"),
    architecture="XLNetForQuestionAnsweringSimple",
)
