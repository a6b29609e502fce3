"""Text classification, multi-label classification and regression."""

from official.xlnet.tasks.classification.datasets import DATASETS

__all__ = ["DATASETS", "INPUTS", "NAMES"]

NAMES = ("classification", "multi_label", "regression")
INPUTS = ()  # Texts of any names.
