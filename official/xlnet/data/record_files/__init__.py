"""Record files: their framing and checksums, and reading them row by row or from the middle."""
