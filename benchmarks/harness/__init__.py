"""Benchmark harness: workloads, worker processes and generated documents."""
