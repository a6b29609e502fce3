"""Benchmarks of speed, memory and learning, compared with other implementations."""

from official.xlnet.cli import set_environment_defaults

# Must be set before the first import of TensorFlow.
set_environment_defaults()
