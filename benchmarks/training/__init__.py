"""Benchmarks of the training step, ours and the peers'."""
