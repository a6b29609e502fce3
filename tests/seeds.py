"""Random numbers without a seed of their own, such as first weights of Keras, are those of a test.

Initializers of both Kerases draw their seeds from Python's generator. It is seeded by the name of
each test and of each fixture, so a test has the same weights alone, among others and in any order.
"""

import random
import zlib

import numpy as np
import pytest


def seed(name):
    """Seeds Python's generator and NumPy's global one by a name.

    That of TensorFlow is left: seeding it would clear the kernels of all operations.
    """
    random.seed(name)
    np.random.seed(zlib.crc32(name.encode()))


def name_of_fixture(fixturedef, request):
    """The place and the name of a fixture, with its parameter."""
    return f"{fixturedef.baseid}::{fixturedef.argname}[{getattr(request, 'param_index', 0)}]"


@pytest.hookimpl(tryfirst=True)
def pytest_fixture_setup(fixturedef, request):
    """Seeds what a fixture draws, which may be shared by tests."""
    seed(name_of_fixture(fixturedef, request))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item):
    """Seeds what a test draws, whatever its fixtures have drawn."""
    seed(item.nodeid)
