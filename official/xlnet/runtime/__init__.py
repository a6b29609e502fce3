"""Runtime utilities: distribution strategies, memory, preemption, progress and logging."""
