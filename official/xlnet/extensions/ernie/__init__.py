"""Auxiliary objectives of ERNIE 2.0 (Sun et al., 2020): capitalization, token and document."""
