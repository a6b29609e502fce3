"""Settings of an export."""
