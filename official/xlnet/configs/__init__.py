"""Typed configuration: one dataclass per section, and `XLNetConfig`, which holds them all."""
