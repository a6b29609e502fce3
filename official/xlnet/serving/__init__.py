"""Serving: models as SavedModels that TF Serving takes as they are, and a client of it."""
