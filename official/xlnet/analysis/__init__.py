"""Looking into a model and its data: attention maps, windows, training curves."""
