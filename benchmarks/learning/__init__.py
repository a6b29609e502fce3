"""Benchmarks of model quality: held-out loss, fine-tuned accuracy, ablations."""
