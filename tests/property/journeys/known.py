"""Violations that others are mending: (words of the violation, issue); empty at the end."""

KNOWN: tuple[tuple[str, str], ...] = ()
