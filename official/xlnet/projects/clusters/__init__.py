"""Training on several machines: `--strategy=multi_worker`."""
