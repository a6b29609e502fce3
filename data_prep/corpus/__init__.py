"""Corpus: sharding, document readers and filters, and vocabulary training."""
