"""Visualization: attention maps, windows of a data set, training curves."""
