"""Benchmarks of the training step, ours and that of other implementations."""
