"""Record files: their framing, and reading one from the middle."""
