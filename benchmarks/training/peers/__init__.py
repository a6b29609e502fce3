"""Other implementations of XLNet with the same workload, in their fastest modes."""
