"""Every number of a configuration has a range, which is checked when it is loaded."""

import dataclasses
import math
import numbers

import numpy as np
import pytest

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.validation import NOT_NEGATIVE, require_number
from official.xlnet.errors import ConfigError

NUMBERS = [
    (section.name, field.name, type(field.default))
    for section in dataclasses.fields(XLNetConfig)
    for field in dataclasses.fields(section.default_factory)
    if type(field.default) in (int, float)
]


@pytest.mark.parametrize(("section", "key", "kind"), NUMBERS)
def test_every_number_has_a_range(section, key, kind):
    wrong = [10**19, -(10**19)] if kind is int else [math.nan, math.inf, -math.inf, 1e39]
    for value in wrong:
        config = XLNetConfig()
        setattr(getattr(config, section), key, value)
        with pytest.raises(ConfigError, match=key):
            config.check()


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("weight_decay=-5", "training.weight_decay: expected at least 0, got -5.0"),
        ("adam_beta_1=1", "training.adam_beta_1: expected in [0, 1), got 1.0"),
        ("adam_beta_1=-1e-9", "training.adam_beta_1: expected in [0, 1), got -1e-09"),
        ("clip_norm=.nan", "training.clip_norm: expected at least 0, got nan"),
        ("clip_norm=-1", "training.clip_norm: expected at least 0, got -1.0"),
        ("decay_power=-3", "training.decay_power: expected at least 0, got -3.0"),
        ("end_learning_rate=.nan", "training.end_learning_rate: expected at least 0, got nan"),
        ("layer_decay=0", "training.layer_decay: expected in (0, 1], got 0.0"),
        ("init_std=-1", "model.init_std: expected in [0, 100], got -1.0"),
        ("learning_rate=0", "training.learning_rate: expected above 0 and finite, got 0.0"),
        ("layer_decay=1.1", "training.layer_decay: expected in (0, 1], got 1.1"),
        ("learning_rate=.inf", "training.learning_rate: expected above 0 and finite, got inf"),
        ("learning_rate=1e999", "training.learning_rate: expected above 0 and finite, got inf"),
        ("num_layers=1000000000", "model.num_layers: expected in [1, 1000], got 1000000000"),
        ("training.seed=-1", "training.seed: expected in [0, 4294967295], got -1"),
        ("activation=tanh", "model.activation: expected one of gelu, gelu_exact, relu"),
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
