"""Held-out loss over training steps, beside other implementations."""
