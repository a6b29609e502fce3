"""Benchmark phases, and the tables and charts made from their results."""
