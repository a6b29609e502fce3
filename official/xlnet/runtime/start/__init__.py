"""The start of a program: what is done before TensorFlow is imported."""
