"""Configuration: one typed section a file, and the experiment that joins them."""
