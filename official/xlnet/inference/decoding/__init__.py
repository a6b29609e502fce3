"""Predicting tokens from others: one by one with a cache, or several in each pass."""
