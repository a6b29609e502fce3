"""Visualizes records, attention maps or training runs: records, attention, runs.

Each is a verb of its own, `xlnet inspect records` for example; see `xlnet inspect records --help`.
"""
