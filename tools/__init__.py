"""Programs for people who work on this checkout."""
