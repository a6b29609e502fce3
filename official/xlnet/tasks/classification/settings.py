"""Keys of classification, multi-label classification and regression."""

from __future__ import annotations

from official.xlnet.configs.base import register_settings
from official.xlnet.tasks.classification import NAMES
from official.xlnet.tasks.settings import AnswerModuleConfig


@register_settings("task", name=NAMES)
class ClassificationConfig(AnswerModuleConfig):
    """Classes or numbers of texts.

    Attributes:
      scope: data set name in variable names of the TF1 release, e.g. `mnli`.
      class_weights: `none`, or `balanced` (loss weights inversely proportional to class counts).
      label_separator: what separates the classes of a `multi_label` row in a table.
    """

    allowed = {"class_weights": ("none", "balanced")}
    unread_with = {
        "class_weights": ("name", ("regression", "multi_label")),
        "label_separator": ("name", ("regression", "classification")),
    }
    has_text_columns = True

    scope: str = ""
    class_weights: str = "none"
    label_separator: str = ","
