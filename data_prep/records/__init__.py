"""Pre-training records: token files, splits, lanes, windows and TFRecord serialization."""
