"""Memory of tensors that are no longer needed."""

import subprocess
import sys

import pytest

_SCRIPT = """
import tensorflow as tf
from benchmarks.harness.worker import resident_bytes
from official.xlnet.runtime.distribution import release_memory
from official.xlnet.configs.training import TrainingConfig

release_memory(TrainingConfig(release_memory={release}))
tf.ones([])
before = resident_bytes()
tensors = [tf.random.uniform([size, 1013]) for size in range(1000, 1050)]
taken = resident_bytes() - before
del tensors
print(taken, resident_bytes() - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Reads /proc, sets up glibc.")
@pytest.mark.parametrize("release", [True, False])
def test_memory_goes_back_to_the_system_when_asked(release):
    script = _SCRIPT.format(release=release)
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    taken, kept = map(int, run.stdout.split()[-2:])
    assert taken > 150e6  # 50 tensors of 4 MB.
    assert (kept < 0.2 * taken) == release
