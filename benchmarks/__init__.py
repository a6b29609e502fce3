"""Programs that measure."""
