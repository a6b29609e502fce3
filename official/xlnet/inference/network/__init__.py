"""The inference network: the form of the model that prediction, scoring and serving run."""
