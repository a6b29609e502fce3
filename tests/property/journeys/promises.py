"""What is held against what, and how a promise that was not kept is reported."""

import math


class Violation(AssertionError):
    """A promise that was not kept."""


def promise(holds: bool, name: str, detail: object = "") -> None:
    """Raises a `Violation` unless a promise holds."""
    if not holds:
        raise Violation(f"{name}: {detail}"[:2000])


def close(got: float, wanted: float, tolerance: float = 2e-4) -> bool:
    """Whether two numbers are equal up to rounding of float32."""
    return math.isclose(got, wanted, rel_tol=tolerance, abs_tol=tolerance)
