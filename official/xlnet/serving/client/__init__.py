"""Clients of a TensorFlow Serving endpoint."""
