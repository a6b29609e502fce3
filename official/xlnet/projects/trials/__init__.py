"""Several fine-tuning runs: random seeds, folds, and a search of settings."""
