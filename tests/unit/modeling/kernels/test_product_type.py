"""Products of the network in bfloat16: all of them, close to float32, on every kind of device."""

import numpy as np
import pytest
import tensorflow as tf

from official import xlnet
from official.xlnet.modeling.kernels import product_type
from official.xlnet.modeling.kernels.device_forms import DEVICES, built_for
from official.xlnet.modeling.kernels.product_type import advice_on_products, matmul_precision
from official.xlnet.modeling.layers.losses import cross_entropy_sum
from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
from official.xlnet.modeling.networks.stored_encoder import stored_encoder
from tests.helpers.tiny import VOCAB, random_inputs, randomize, tiny_config, tiny_encoder


def product_types(graph):
    """Types of the operands of all products in a graph and its functions.

    Without products with a vector: XLA's form of sums over rows, which stay float32.
    """
    definition = graph.as_graph_def()
    nodes = [*definition.node]
    for function in definition.library.function:
        nodes += function.node_def
    names = ("MatMul", "BatchMatMulV2", "Einsum")
    products = [node for node in nodes if node.op in names and "MatVec" not in node.name]
    return {tf.dtypes.as_dtype(node.attr["T"].type) for node in products}


def flat(gradient):
    tensor = tf.convert_to_tensor(gradient)
    assert tensor.dtype == tf.float32
    return tensor.numpy().ravel()


def cosine(x, y):
    return x @ y / np.linalg.norm(x) / np.linalg.norm(y)


def traced_step(kind, type_name, **settings):
    """Types of all products of a step that is traced anew, its loss and its gradients."""
    model = XLNetPretrainer(tiny_config(dropout=0.1, dropatt=0.2, num_layers=1, **settings))
    randomize(model.trainable_variables, seed=5)
    inputs = random_inputs(3, batch=3, directions=True, padding=True, memory=5)
    inputs |= {"dropout_seed": [3, 7]}
    shape = inputs["target_positions"].shape
    labels = tf.constant(np.random.default_rng(1).integers(0, VOCAB, shape), tf.int32)

    @tf.function(autograph=False)
    def step(inputs):
        with tf.GradientTape() as tape:
            logits = model(inputs, training=True)["logits"]
            loss = cross_entropy_sum(logits, labels, tf.ones(shape)) / np.prod(shape)
        return loss, tape.gradient(loss, model.trainable_variables)

    inputs = tf.nest.map_structure(tf.constant, inputs)
    with built_for(kind), matmul_precision(type_name):
        types = product_types(step.get_concrete_function(inputs).graph)
        loss, gradients = step(inputs)
    names = [variable.name for variable in model.trainable_variables]
    return types, float(loss), dict(zip(names, gradients, strict=True))


@pytest.mark.parametrize(
    ("kind", "recompute"),
    [
        pytest.param(kind, recompute, marks=[pytest.mark.slow] * (recompute != "block"))
        for kind, recompute in zip(DEVICES, ["block", "none", "attention"], strict=True)
    ],
)
def test_every_product_of_a_step_is_rounded_and_stays_close(kind, recompute):
    types, loss, gradients = traced_step(kind, "float32", recompute=recompute)
    rounded_types, rounded_loss, rounded = traced_step(kind, "bfloat16", recompute=recompute)
    assert (types, rounded_types) == ({tf.float32}, {tf.bfloat16})
    assert rounded_loss != loss
    assert rounded_loss == pytest.approx(loss, rel=5e-3)
    pairs = {name: (flat(gradient), flat(rounded[name])) for name, gradient in gradients.items()}
    for name, pair in pairs.items():  # Small gradients are sums of large terms.
        assert cosine(*pair) >= 0.99, name
    assert cosine(*map(np.concatenate, zip(*pairs.values(), strict=True))) >= 0.999


@pytest.mark.parametrize("storage", ["float32", "bfloat16", "int8"])
def test_stored_weights(storage):
    """An exported network: bfloat16 weights are multiplied as they are stored."""
    source = tiny_encoder(num_layers=1)
    inputs = {name: random_inputs(0)[name] for name in ("token_ids", "segment_ids")}

    def vectors(name):
        network, _ = stored_encoder(source, 13, storage)
        function = tf.function(lambda: network(inputs)["content"], autograph=False)
        with matmul_precision(name):
            return product_types(function.get_concrete_function().graph), function()

    (types, wanted), (rounded_types, rounded) = vectors("float32"), vectors("bfloat16")
    assert (types, rounded_types) == ({tf.float32}, {tf.bfloat16})
    np.testing.assert_allclose(rounded, wanted, atol=0.1)
    assert np.corrcoef(np.ravel(rounded), np.ravel(wanted))[0, 1] > 0.999


def test_type_ends_with_its_block():
    assert xlnet.products_in is xlnet.matmul_precision  # Its former name.
    with pytest.raises(ZeroDivisionError), matmul_precision("bfloat16"):
        raise ZeroDivisionError
    product = product_type.multiply(tf.constant([[1.001]]), tf.constant([[3.0]]))
    np.testing.assert_allclose(product, [[3.003]], rtol=1e-6)
    with pytest.raises(ValueError, match="expected one of float32, bfloat16, got 'float16'"):
        matmul_precision("float16").__enter__()


@pytest.mark.parametrize(
    ("flags", "name", "message"),
    [
        (
            "avx2 avx512_bf16",
            "float32",
            "training.products=bfloat16, a step takes about a fifth less",
        ),
        ("avx2 amx_bf16 x", "bfloat16", None),
        ("avx2 avx512f", "bfloat16", "no instructions for bfloat16"),
        ("avx2 avx512f", "float32", None),
    ],
)
def test_what_is_said_of_a_cpu(flags, name, message, monkeypatch, tmp_path):
    (tmp_path / "cpuinfo").write_text(f"processor: 0\nflags\t\t: fpu {flags}\n")
    monkeypatch.setattr(product_type, "CPU_FLAGS", str(tmp_path / "cpuinfo"))
    said = advice_on_products(name)
    assert message in said if message else said == ""
