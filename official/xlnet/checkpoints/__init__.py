"""Checkpoints: model directories, checkpoint files and conversion."""
