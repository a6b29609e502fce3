"""The model: operations, layers, networks, heads, objectives, and the trainable models."""
