"""Our steps on accelerators: compiled for TPUs without one, and as bundles that run anywhere."""
