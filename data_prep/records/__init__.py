"""Tokens to lanes, windows and TFRecord files."""
