"""Batches of texts: checks, normalization and counts."""
