"""Text that cannot be read as it is."""
