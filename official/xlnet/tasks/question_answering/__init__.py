"""Extractive question answering: SQuAD."""
