"""Benchmarks of what is learned: loss, accuracy, ablations."""
