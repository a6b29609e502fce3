"""Keys of the section `task` of `token_regression`."""

from __future__ import annotations

from official.xlnet.configs.base import register_settings
from official.xlnet.tasks.settings import LabelConfig
from official.xlnet.tasks.token_classification import TagConfig


@register_settings("task", name=["token_regression"])
class NumberConfig(TagConfig, LabelConfig):
    """Numbers of words or letters."""

    unread_with = {"label_smoothing": ("name", ("token_regression",))}
    has_number_labels = True
