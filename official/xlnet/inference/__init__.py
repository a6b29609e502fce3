"""Prediction, scoring and generation with a trained model."""
