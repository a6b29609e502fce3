"""Shapes, initial weights and names: what layers and their fast forms share."""
