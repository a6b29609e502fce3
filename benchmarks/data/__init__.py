"""Benchmarks of data preparation and the input pipeline."""
