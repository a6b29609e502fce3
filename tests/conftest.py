"""Settings that TensorFlow reads when it is first imported."""

from official.xlnet.cli import set_environment_defaults

set_environment_defaults()
