"""Fast forms of the layers' operations for CPU, GPU and TPU, and what they are made of."""

# Imported so that models are freed.
from official.xlnet.modeling.kernels import tensorflow_internals as tensorflow_internals
