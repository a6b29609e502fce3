"""Programs for an environment with jax and without TensorFlow; they are run by their path."""
