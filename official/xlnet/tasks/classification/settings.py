"""Keys of classification, multi-label classification and regression."""

from __future__ import annotations

from official.xlnet.configs.base import register_settings
from official.xlnet.configs.registry import ANSWER_MODULES
from official.xlnet.tasks.classification import NAMES
from official.xlnet.tasks.settings import LabelConfig


@register_settings("task", name=NAMES)
class ClassificationConfig(LabelConfig):
    """Classes or numbers of texts.

    Attributes:
      scope: data set name in variable names of the TF1 release, e.g. `mnli`.
      class_weights: `none`, or `balanced` (loss weights inversely proportional to class counts).
      answer_module: the head of `classification`: `summary` (dense layer on the sequence summary)
        or that of an extension.
    """

    allowed = {"class_weights": ("none", "balanced"), "answer_module": ANSWER_MODULES}
    has_text_columns = True

    scope: str = ""
    class_weights: str = "none"
    answer_module: str = "summary"
