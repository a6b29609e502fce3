"""What a training step costs in theory: floating-point operations and bytes."""
