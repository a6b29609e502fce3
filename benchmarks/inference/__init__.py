"""Benchmarks of prediction, generation and checkpoint conversion."""
