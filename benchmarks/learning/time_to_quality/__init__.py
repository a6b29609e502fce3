"""Held-out loss over wall time, from the start of the process, beside other implementations."""
