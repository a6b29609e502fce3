"""Benchmarks of the exported model and of a server."""
