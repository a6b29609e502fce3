"""Multi-task fine-tuning: one encoder, a head for each data set."""

from official.xlnet.projects.multitask.settings import MultitaskConfig

__all__ = ["MultitaskConfig"]
