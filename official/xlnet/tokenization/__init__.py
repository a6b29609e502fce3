"""Tokenization: text to token ids and back, in Python and as TensorFlow operations."""
