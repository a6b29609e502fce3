"""Comparisons one by one: arrays, variables, rows; and what the message of an error promises."""

import itertools
import re

import numpy as np
import pytest

from official.xlnet.errors import ConfigError, DataError


def values(variables):
    """Copies of the values that variables have now."""
    return [variable.numpy() for variable in variables]


def path_of(variable):
    """The name of a variable with the path of its layer, the same with both Kerases."""
    path = getattr(variable, "path", variable.name).split(":")[0]
    # Keras 3 has the names of the model and of all layers in it.
    return re.sub(r"^xlnet_pretrainer/|(?<=/)(segment_encoding|biases)/", "", path)


def assert_all_equal(found, wanted, about=""):
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other, about)


def assert_all_close(found, wanted, rtol=1e-7, atol=0.0, about=""):
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=rtol, atol=atol, err_msg=about)


def assert_same_variables(found, expected):
    """Variables of two models, in their order, have equal values."""
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy(), other.name)


def assert_same_items(found, expected):
    """Long lists are equal, or the first places are named where they differ."""
    pairs = itertools.zip_longest(found, expected)
    different = [(place, *pair) for place, pair in enumerate(pairs) if pair[0] != pair[1]]
    assert not different, f"{len(different)} of {len(expected)} differ, such as {different[:3]}"


def assert_all_differ(found, others):
    """No array is the same as its counterpart."""
    assert all(np.any(one != other) for one, other in zip(found, others, strict=True))


def assert_refused(message, call, *arguments, **settings):
    """A call raises a user error: one line, not too long, that matches a pattern."""
    with pytest.raises((ConfigError, DataError), match=message) as caught:
        call(*arguments, **settings)
    assert 20 < len(str(caught.value)) < 1200 and "\n" not in str(caught.value)
    return caught.value
