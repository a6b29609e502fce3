"""Around a run: devices, memory, preemption, progress and logs."""
