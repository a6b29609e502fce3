"""Where Keras compiles the training step with XLA as a whole."""

import types

import pytest
import tensorflow as tf

from official.xlnet.runtime.distribution import compiles_step


@pytest.mark.parametrize(
    ("jit_compile", "gpus", "replicas", "expected"),
    [
        (None, 0, 1, False),
        (None, 1, 1, True),
        (None, 2, 2, False),
        (False, 1, 1, False),
        (True, 0, 1, True),
        (True, 0, 2, False),
        (True, 2, 2, True),
    ],
)
def test_on_one_gpu_or_where_it_is_wanted_and_works(
    jit_compile, gpus, replicas, expected, monkeypatch
):
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: ["GPU"] * gpus)
    strategy = types.SimpleNamespace(num_replicas_in_sync=replicas)
    assert compiles_step(jit_compile, strategy) is expected


def test_a_tpu_compiles_it_by_itself():
    strategy = tf.distribute.TPUStrategy.__new__(tf.distribute.TPUStrategy)
    assert compiles_step(True, strategy) is False
