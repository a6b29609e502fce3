"""Model directories and their checkpoint files."""
