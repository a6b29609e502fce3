"""How contestants are run and timed: workloads, worker processes, documents."""
