"""The packed encoder: the form of the network that inference and serving run."""
