"""How blocks follow each other in depth: a block per layer, or as `register_depth` says."""
