"""Several fine-tuning runs, of which the best model is kept: repeated, and as a search."""
