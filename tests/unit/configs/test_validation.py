"""What is said of a number out of its range; `tests/conformance/test_keys.py` has every key."""

import math
import numbers

import numpy as np
import pytest

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.validation import NOT_NEGATIVE, require_number
from official.xlnet.errors import ConfigError


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("adam_beta_1=1", "training.adam_beta_1: expected in [0, 1), got 1.0"),
        ("adam_beta_1=-1e-9", "training.adam_beta_1: expected in [0, 1), got -1e-09"),
        ("clip_norm=.nan", "training.clip_norm: expected at least 0, got nan"),
        ("layer_decay=0", "training.layer_decay: expected in (0, 1], got 0.0"),
        ("learning_rate=0", "training.learning_rate: expected above 0 and finite, got 0.0"),
        ("learning_rate=1e999", "training.learning_rate: expected above 0 and finite, got inf"),
        ("num_layers=1000000000", "model.num_layers: expected in [1, 1000], got 1000000000"),
    ],
)
def test_values_out_of_range_are_named(setting, expected):
    with pytest.raises(ConfigError) as error:
        XLNetConfig().apply([setting])
    assert expected in str(error.value)


def test_the_ends_of_a_closed_range_are_in_it():
    XLNetConfig().apply(["adam_beta_1=0", "layer_decay=1", "init_std=100", "weight_decay=0"])


@pytest.mark.parametrize(
    ("value", "kind", "message"),
    [
        (-1, numbers.Integral, "n: expected at least 0, got -1"),
        (True, numbers.Integral, "n: expected an integer, got True"),
        (2.0, numbers.Integral, "n: expected an integer, got 2.0"),
        ("2", numbers.Integral, "n: expected an integer, got '2'"),
        (None, numbers.Real, "n: expected a number, got None"),
        (math.nan, numbers.Real, "n: expected at least 0, got nan"),
        (math.inf, numbers.Real, "n: expected at least 0, got inf"),
        (np.array([1.0]), numbers.Real, "n: expected a number, got array"),
    ],
)
def test_an_argument_that_is_no_number_of_its_range(value, kind, message):
    with pytest.raises(ConfigError) as caught:
        require_number("n", value, NOT_NEGATIVE, kind)
    assert str(caught.value).startswith(message)
