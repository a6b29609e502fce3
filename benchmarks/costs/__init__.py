"""Cost model of a training step: floating-point operations and memory traffic."""
