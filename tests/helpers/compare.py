"""Lists of arrays: copies of variables, and comparisons one by one."""

import numpy as np


def values(variables):
    """Copies of the values that variables have now."""
    return [variable.numpy() for variable in variables]


def assert_all_equal(found, wanted):
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)


def assert_all_close(found, wanted, rtol=1e-7, atol=0.0):
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=rtol, atol=atol)


def assert_all_differ(found, others):
    """No array is the same as its counterpart."""
    assert all(np.any(one != other) for one, other in zip(found, others, strict=True))
