"""What a TPU asks of the training step, as far as it shows without one."""

import math
import re

import pytest
import tensorflow as tf
import tf_keras

from official.xlnet.modeling.kernels.device_forms import built_for
from tests.helpers.compiled import make_model
from tests.helpers.tiny import MEMORY, TOKENS, WIDTH, random_windows

# Operations of XLA that work on arrays of fixed shape, which every XLA device has.
DEVICE_OPS = """
abs add and bitcast-convert broadcast call ceil clamp compare concatenate conditional constant
convert convolution copy cosine divide dot dynamic-slice dynamic-update-slice exponential
exponential-minus-one floor gather get-tuple-element iota is-finite log log-plus-one maximum
minimum multiply negate not opt-barrier or pad parameter power reduce reduce-window remainder
reshape reverse round-nearest-even rsqrt scatter select set-dimension-size shift-left
shift-right-arithmetic
shift-right-logical sign sine slice sort sqrt subtract tanh transpose tuple xor
"""


@pytest.fixture(scope="module", params=["float32", "mixed_bfloat16"])
def module(request):
    """The step's HLO, as TensorFlow hands it to any XLA device."""
    tf_keras.mixed_precision.set_global_policy(request.param)
    try:
        model = make_model(dropout=0.1, dropatt=0.1, num_layers=1)
        step = tf.function(model.train_step, jit_compile=True)
        with built_for("TPU"):
            return step.experimental_get_compiler_ir(random_windows(0))(stage="hlo")
    finally:
        tf_keras.mixed_precision.set_global_policy("float32")


@pytest.mark.slow
def test_the_step_is_one_module_of_device_operations(module):
    ops = set(re.findall(r"^\s*(?:ROOT )?[\w.%-]+ = .*?[\])}] ([a-z][a-z0-9-]*)\(", module, re.M))
    assert {"dot", "sort"} <= ops
    # No calls of the host: infeed, outfeed, send, recv, custom-call.
    unknown = ops - set(DEVICE_OPS.split())
    assert not unknown


@pytest.mark.slow
def test_shapes_are_static(module):
    """f32[<=8] would be an array of at most eight numbers."""
    assert "<=" not in module


@pytest.mark.slow
def test_nothing_large_is_constant(module):
    """Nothing but the factors of positions; counters of dropout masks would be far larger."""
    shapes = re.findall(r" = (\w+\[[\d,]*\])\S* constant\(", module)
    sizes = {
        shape: math.prod(map(int, re.findall(r"\d+", shape.split("[")[1]))) for shape in shapes
    }
    table = 2 * (TOKENS + MEMORY) * WIDTH
    assert max(sizes.values()) <= table, max(sizes, key=sizes.get)
