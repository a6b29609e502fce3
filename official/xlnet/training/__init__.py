"""Pre-training, fine-tuning and evaluation runs."""
