"""Trainable Keras models: pre-training and fine-tuning, with their training steps."""
