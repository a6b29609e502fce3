"""Measurements of speed, memory and learning, beside other implementations."""

from official.xlnet.cli import set_environment_defaults

# TensorFlow reads them when it is first imported, by whichever module comes first.
set_environment_defaults()
