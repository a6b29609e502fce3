"""The forms of an accelerator give what those of a CPU give."""

import numpy as np
import pytest
import tensorflow as tf

from official.xlnet.modeling.layers.feed_forward import inner_width
from official.xlnet.modeling.ops.device_forms import built_for, has_accelerator
from official.xlnet.modeling.ops.xla_kernels import compiled, row_sums
from tests.helpers.compiled import make_model, state
from tests.helpers.tiny import random_windows


def test_choice_ends_with_its_block():
    assert not has_accelerator()  # Tests run on a CPU.
    with built_for(accelerator=True):
        assert has_accelerator()
        with built_for(accelerator=False):
            assert not has_accelerator()
        assert has_accelerator()
    with pytest.raises(ZeroDivisionError), built_for(accelerator=True):
        raise ZeroDivisionError
    assert not has_accelerator()


def _which(x):
    return x + (1.0 if has_accelerator() else 0.0)


def test_kernels_of_one_device_are_not_used_for_the_other():
    x = tf.zeros([2, 3])
    for accelerator in (False, True, False):
        with built_for(accelerator):
            assert (tf.function(compiled(_which))(x).numpy() == accelerator).all()


def test_row_sums():
    x = np.random.default_rng(0).standard_normal([2, 3, 5]).astype(np.float32)
    for accelerator in (False, True):
        with built_for(accelerator):
            graph = tf.function(row_sums).get_concrete_function(x).graph
            np.testing.assert_allclose(row_sums(tf.constant(x)), x.sum(-1), rtol=1e-5)
        kinds = {operation.type for operation in graph.get_operations()}
        assert ("Sum" in kinds) == accelerator
        assert ("BatchMatMulV2" in kinds) != accelerator


def test_accelerators_have_inner_rows_as_they_are_configured():
    with built_for(accelerator=True):
        assert inner_width(1024) == 1024


@pytest.mark.parametrize("jit_compile", [False, True])
def test_training_step(jit_compile):
    """Two steps with dropout, memory and both directions: the same losses, weights and memory."""
    results = []
    for accelerator in (False, True):
        with built_for(accelerator):
            model = make_model(dropout=0.1, dropatt=0.2)
            step = tf.function(model.train_step, jit_compile=jit_compile)
            logs = [step(random_windows(number))["loss"] for number in range(2)]
        results.append([*logs, *state(model)])
    for got, wanted in zip(*results, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=2e-5)
