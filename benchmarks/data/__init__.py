"""Benchmarks of data preparation and of the input pipeline."""
