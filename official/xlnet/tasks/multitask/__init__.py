"""Multi-task fine-tuning: one encoder, a head for each data set."""

FORMATS = ()  # No other format has its head.
