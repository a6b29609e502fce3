"""Exported graph operations other than the network: offsets, ragged slices, export settings."""
