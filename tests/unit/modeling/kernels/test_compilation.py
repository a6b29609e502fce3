"""What is compiled, for which device, what a graph keeps, and what it computes again."""

import math
import re

import numpy as np
import pytest
import tensorflow as tf

from official.xlnet.modeling.kernels.device_forms import DEVICES, built_for, device, has_accelerator
from official.xlnet.modeling.kernels.rematerialization import recomputed
from official.xlnet.modeling.kernels.xla_kernels import compiled
from tests.helpers.compare import assert_all_close
from tests.helpers.compiled import make_model
from tests.helpers.documents import ROOT
from tests.helpers.graphs import above
from tests.helpers.tiny import (
    MEMORY,
    TOKENS,
    WIDTH,
    random_inputs,
    random_windows,
    tiny_encoder,
)

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


def test_choice_of_a_device_ends_with_its_block():
    with pytest.raises(ZeroDivisionError), built_for("TPU"):
        with built_for("CPU"):
            assert not has_accelerator()
        assert has_accelerator()
        raise ZeroDivisionError
    assert not has_accelerator()  # Tests run on a CPU.


def _which(x):
    return x + float(DEVICES.index(device()))


def test_kernels_of_one_device_are_not_used_for_the_other():
    x = tf.zeros([2, 3])
    for kind in ("CPU", "TPU", "GPU", "CPU"):
        with built_for(kind):
            assert (tf.function(compiled(_which))(x).numpy() == DEVICES.index(kind)).all()


def functions_of(function, *arguments):
    graph = tf.function(function, autograph=False).get_concrete_function(*arguments).graph
    return len(graph.as_graph_def().library.function)


def test_layers_share_their_kernels():
    """Compiling takes longer than tracing."""

    def number_of_kernels(num_layers):
        encoder = tiny_encoder(num_layers=num_layers, dropout=0.1, dropatt=0.1)

        def step(inputs):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(encoder(inputs, training=True)["query"])
            return tape.gradient(loss, encoder.trainable_variables)

        return functions_of(step, tf.nest.map_structure(tf.constant, random_inputs(0)))

    assert number_of_kernels(1) == number_of_kernels(2) > 10


def test_only_the_batch_may_be_unknown():
    """XLA compiles anew for each shape: other sizes that are unknown run op by op."""
    shapes = [3, 5], [None, 5], [3, None]
    kernel = compiled(_which)
    assert [functions_of(kernel, tf.TensorSpec(shape)) for shape in shapes] == [1, 1, 0]


def gradients_of_a_function(wrap):
    """Of its arguments and of a variable; it also knows a constant that is no argument."""
    rng = np.random.default_rng(0)
    kernel = tf.Variable(rng.normal(size=(5, 7)), dtype=tf.float32)
    beside = tf.constant(rng.normal(size=7), tf.float32)
    arguments = [tf.constant(rng.normal(size=(3, n)), tf.float32) for n in (5, 7)]

    def step(x, y):
        with tf.GradientTape() as tape:
            tape.watch([x, y])
            found = wrap(lambda x, y: tf.tanh(x @ kernel + tf.exp(beside)) * y)(x, y)
            loss = tf.reduce_sum(tf.square(found))
        return tape.gradient(loss, [x, y, kernel])

    return step, arguments


@pytest.mark.parametrize("kind", ["eager", "graph", *DEVICES])
def test_recomputed_gradients_are_those_of_the_function(kind):
    """A compiled step has a barrier, or XLA would find that both are the same, and keep one."""
    step, arguments = gradients_of_a_function(recomputed)
    if kind == "graph":
        step = tf.function(step)
    if kind in DEVICES:
        step = tf.function(step, jit_compile=True)
        with built_for(kind):
            assert "opt-barrier" in step.experimental_get_compiler_ir(*arguments)(stage="hlo")
    plain, _ = gradients_of_a_function(lambda function: function)
    assert_all_close(step(*arguments), plain(*arguments), rtol=1e-5, atol=1e-6)


def test_what_is_computed_again_waits_for_its_gradient():
    """And what comes before waits for the gradients of variables."""
    step, arguments = gradients_of_a_function(recomputed)
    graph = tf.function(step).get_concrete_function(*arguments).graph
    operations = {kind: [] for kind in ("Tanh", "Exp")}
    for operation in graph.get_operations():
        operations.get(operation.type, []).append(operation)
    for _, again in operations.values():
        assert operations["Tanh"][0] in above(again)
    *of_arguments, of_kernel = graph.structured_outputs
    for gradient in of_arguments:
        assert of_kernel.op.inputs[0].op in above(gradient.op)


@pytest.mark.slow
@pytest.mark.parametrize("recompute", ["attention", "block"])
def test_all_of_a_barrier_is_read(recompute):
    """XLA drops the rest, and with it the order."""
    with built_for("GPU"):
        model = make_model(recompute=recompute, dropout=0.1, dropatt=0.1, num_layers=1, mem_len=0)
        step = tf.function(model.train_step, jit_compile=True)
        graph = step.get_concrete_function(random_windows(0)).graph
    barriers = [op for op in graph.get_operations() if op.type == "XlaOptimizationBarrier"]
    assert len(barriers) > 2
    for barrier in barriers:
        assert all(output.consumers() for output in barrier.outputs), barrier.name


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["float32", "mixed_bfloat16"])
def test_the_step_on_a_tpu_is_one_module_of_device_operations(precision):
    """As far as it shows without one, from the HLO that TensorFlow hands to any XLA device."""
    model = make_model(dropout=0.1, dropatt=0.1, num_layers=1, precision=precision)
    step = tf.function(model.train_step, jit_compile=True)
    with built_for("TPU"):
        module = step.experimental_get_compiler_ir(random_windows(0))(stage="hlo")
    kinds = re.findall(r"^\s*(?:ROOT )?[\w.%-]+ = .*?[\])}] ([a-z][a-z0-9-]*)\(", module, re.M)
    assert {"dot", "sort"} <= set(kinds)
    # No calls of the host: infeed, outfeed, send, recv, custom-call.
    assert not set(kinds) - set(DEVICE_OPS.split())
    assert "<=" not in module, "f32[<=8] would be an array of at most eight numbers"
    # Nothing but the factors of positions; counters of dropout masks would be far larger.
    constants = re.findall(r" = \w+\[([\d,]*)\]\S* constant\(", module)
    sizes = [math.prod(map(int, filter(None, shape.split(",")))) for shape in constants]
    assert max(sizes) <= 2 * (TOKENS + MEMORY) * WIDTH


def test_private_modules_are_imported_in_one_file_which_is_known_to_fit_this_version():
    assert tf.__version__.startswith("2.20."), "try tensorflow_internals.py with this version"
    private = re.compile(
        r"^\s*(from|import) (tensorflow\.(python|compiler|core)|(tf_)?keras\.src)", re.M
    )
    files = [*ROOT.glob("official/xlnet/**/*.py"), *ROOT.glob("data_prep/**/*.py")]
    (found,) = (path for path in files if private.search(path.read_text(encoding="utf-8")))
    assert found.name == "tensorflow_internals.py"
