"""Several fine-tuning runs that keep the best model: repeated, as a search, or over folds."""
