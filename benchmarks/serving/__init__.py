"""Benchmarks of exported models and of a server under load."""
