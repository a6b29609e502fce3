"""Log lines of TensorFlow's C++ code: none of XLA; errors are shown."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import sys
from official.xlnet.modeling.ops.keras import keras
import tensorflow as tf

@tf.function(jit_compile=True)
def square(x):
    return x @ x

square(tf.ones([2, 2]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("level", [None, pytest.param("0", marks=pytest.mark.nightly)])
def test_what_xla_logs_is_hidden_unless_one_asks_for_it(level):
    environment = {n: x for n, x in os.environ.items() if n != "TF_CPP_MIN_LOG_LEVEL"}
    if level is not None:
        environment["TF_CPP_MIN_LOG_LEVEL"] = level
    run = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(run, env=environment, capture_output=True, text=True, check=True)
    assert ("Compiled cluster" in done.stderr) == (level == "0")
    if level is None:
        assert done.stderr == ""
