"""Text to tensors: tokenization, packing and windows as TensorFlow operations."""
