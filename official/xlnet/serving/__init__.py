"""Serving: export to SavedModel for TF Serving, and prediction clients."""
