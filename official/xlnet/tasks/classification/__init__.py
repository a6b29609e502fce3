"""Text classification, multi-label classification and regression."""

NAMES = ("classification", "multi_label", "regression")
