"""The forms of an accelerator give what those of a CPU give."""

import numpy as np
import pytest
import tensorflow as tf

from official.xlnet.modeling.kernels.device_forms import DEVICES, built_for, device, has_accelerator
from official.xlnet.modeling.kernels.matrix_products import inner_width
from official.xlnet.modeling.kernels.xla_kernels import compiled, row_sums
from tests.helpers.compiled import make_model, state
from tests.helpers.tiny import random_windows


def test_choice_ends_with_its_block():
    assert not has_accelerator()  # Tests run on a CPU.
    with built_for("TPU"):
        assert has_accelerator()
        with built_for("CPU"):
            assert not has_accelerator()
        assert has_accelerator()
    with pytest.raises(ZeroDivisionError), built_for("TPU"):
        raise ZeroDivisionError
    assert not has_accelerator()


def _which(x):
    return x + float(DEVICES.index(device()))


def test_kernels_of_one_device_are_not_used_for_the_other():
    x = tf.zeros([2, 3])
    for kind in ("CPU", "TPU", "GPU", "CPU"):
        with built_for(kind):
            assert (tf.function(compiled(_which))(x).numpy() == DEVICES.index(kind)).all()


def test_row_sums():
    x = np.random.default_rng(0).standard_normal([2, 3, 5]).astype(np.float32)
    for kind in DEVICES:
        with built_for(kind):
            graph = tf.function(row_sums).get_concrete_function(x).graph
            np.testing.assert_allclose(row_sums(tf.constant(x)), x.sum(-1), rtol=1e-5)
        kinds = {operation.type for operation in graph.get_operations()}
        assert ("Sum" in kinds) == (kind != "CPU")
        assert ("BatchMatMulV2" in kinds) == (kind == "CPU")


def test_accelerators_have_inner_rows_as_they_are_configured():
    with built_for("TPU"):
        assert inner_width(1024) == 1024


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "dropout", "jit_compile"),
    [("GPU", 0.1, False), ("GPU", 0.1, True), ("TPU", 0.0, True)],
)
def test_training_step(kind, dropout, jit_compile):
    """Two steps with memory and both directions: those of a CPU, which are run op by op.

    Dropout of sinusoids has other masks on a TPU; see `FactoredSinusoids.with_dropout`.
    """
    results = []
    for each in ("CPU", kind):
        with built_for(each):
            model = make_model(dropout=dropout, dropatt=0.2, num_layers=1)
            step = model.train_step
            if each == kind:
                step = tf.function(step, jit_compile=jit_compile)
            logs = [step(random_windows(number))["loss"] for number in range(2)]
        results.append([*logs, *state(model)])
    for got, wanted in zip(*results, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=2e-5)
