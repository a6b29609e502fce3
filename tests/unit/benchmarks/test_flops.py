"""The step computes no more than the formulas allow, and is traced once."""

import dataclasses
import math

import pytest
import tensorflow as tf

from benchmarks.costs import flops
from benchmarks.costs.count import products_of, products_of_hlo
from benchmarks.harness.workload import BASE3, Shape, config_of
from benchmarks.training import ours
from official.xlnet.modeling.kernels.device_forms import built_for

# Sizes that tell themselves apart: no two letters are equal, sums included.
SHAPE = Shape(
    num_layers=2,
    d_model=24,
    num_heads=2,
    d_inner=56,
    vocab_size=101,
    seq_len=29,
    mem_len=11,
    reuse_len=13,
    num_predict=5,
    batch_size=3,
)


def trace(shape=SHAPE, **settings):
    """(products of a training step, its model)."""
    model, batch = ours.pretrainer(shape, config_of(shape, **settings))
    graph = tf.function(model.train_step).get_concrete_function(batch).graph
    return list(products_of(graph)), model


@pytest.mark.slow
def test_step_computes_what_the_formula_says():
    """No query row for a token that is no target, no gradient of memory, positions once a batch."""
    check(trace()[0], flops.computed(SHAPE))


def check(products, formula):
    assert sum(product.flops for product in products) == flops.total(formula)
    elements = sum(math.prod(shape) for product in products for shape in product.shapes)
    assert elements == sum(product.elements for product in formula)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["GPU", "TPU"])
def test_step_of_an_accelerator_computes_what_the_formula_says(kind):
    with built_for(kind):
        model, batch = ours.pretrainer(SHAPE, config_of(SHAPE))
        step = tf.function(model.train_step, jit_compile=True)
        hlo = step.experimental_get_compiler_ir(batch)(stage="hlo")
        counted = sum(product.flops for product in products_of_hlo(hlo))
        computed = flops.computed(SHAPE)
    # TensorFlow also asks for gradients of the keys' factors; XLA drops what nobody uses.
    unused = [p.flops // p.passes for p in computed if p.part == "scores from factors"]
    assert counted == flops.total(computed) + sum(unused)


@pytest.mark.slow
@pytest.mark.parametrize("depth", ["shared", "adaptive"])
def test_shared_blocks_save_parameters_and_no_products(depth):
    shape = dataclasses.replace(SHAPE, depth=depth)
    products, model = trace(shape)
    check(products, flops.computed(shape))
    parameters = sum(math.prod(variable.shape) for variable in model.trainable_variables)
    assert flops.num_parameters(shape) == parameters < flops.num_parameters(SHAPE)


@pytest.mark.slow
@pytest.mark.parametrize("recompute", ["attention", pytest.param("block", marks=pytest.mark.slow)])
def test_recomputation_adds_at_most_one_forward_pass(recompute):
    counted = sum(product.flops for product in trace(recompute=recompute)[0])
    computed = flops.computed(SHAPE)
    again = [
        product.flops // product.passes
        for product in computed
        if product.part != "logits"
        and (recompute == "block" or "scores" in product.part or "values" in product.part)
    ]
    assert flops.total(computed) < counted <= flops.total(computed) + sum(again)


def test_formula_of_the_reference_shape():
    """A step of base3 needs about 240 GFLOP; a step of the same without training far less."""
    assert flops.total(flops.necessary(BASE3)) == pytest.approx(240e9, rel=0.01)
    forward = flops.total(flops.necessary(BASE3, training=False))
    L, D, F = BASE3.num_layers, BASE3.d_model, BASE3.d_inner
    T, K, B = BASE3.seq_len, BASE3.seq_len + BASE3.mem_len, BASE3.batch_size
    by_hand = 4 * B * T * D * D + 4 * B * K * D * D
    by_hand += 6 * B * T * K * D + 4 * B * T * D * F
    assert forward == L * by_hand
