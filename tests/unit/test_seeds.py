"""A test draws the same random weights alone and among others, with and without a seed."""

import random

import numpy as np
import pytest

from official.xlnet.modeling.ops.keras import keras
from tests.helpers.small_language_model import random_model
from tests.seeds import seed


def first_weights():
    layer = keras.layers.Dense(7)
    layer.build([None, 5])
    return layer.get_weights()[0]


@pytest.fixture(scope="module")
def numbers_of_module():
    return random.random(), np.random.random()


@pytest.fixture(params=["a", "b"])
def number_of_parameter(request):
    return request.param, random.random()


def test_draws_are_those_of_the_name_of_the_test(request, numbers_of_module, number_of_parameter):
    found = [first_weights(), np.random.random()]
    seed(request.node.nodeid)
    expected = [first_weights(), np.random.random()]
    np.testing.assert_array_equal(found[0], expected[0])
    assert found[1] == expected[1]
    assert not np.array_equal(first_weights(), expected[0])
    seed("tests/unit/test_seeds.py::numbers_of_module[0]")
    assert numbers_of_module == (random.random(), np.random.random())
    name, number = number_of_parameter
    seed(f"tests/unit/test_seeds.py::number_of_parameter[{'ab'.index(name)}]")
    assert number == random.random()


def test_a_random_model_has_the_weights_of_its_seed():
    models = [random_model(seed, num_layers=1) for seed in (3, 4, 3)]
    weights = [np.concatenate([x.numpy().ravel() for x in m.trainable_variables]) for m in models]
    np.testing.assert_array_equal(weights[0], weights[2])
    assert (weights[0] != weights[1]).mean() > 0.9
