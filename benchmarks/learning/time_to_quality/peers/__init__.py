"""Training programs of other implementations, on the windows of the benchmark."""
