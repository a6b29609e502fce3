"""Keras layers of XLNet, and the equations that they compute."""

# Imported so that models are freed; not in `ops`, which is imported before TensorFlow.
from official.xlnet.modeling.ops import gradient_registry as gradient_registry
