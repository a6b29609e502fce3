"""Parts of the exported graph that are not the network."""
