"""Benchmarks of prediction, generation and conversion."""
