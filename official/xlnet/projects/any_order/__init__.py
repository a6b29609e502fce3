"""Scoring in other orders, of words and pairs; generation in steps; absorbing diffusion."""
