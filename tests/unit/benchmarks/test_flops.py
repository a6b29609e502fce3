"""The step computes no more than the formulas allow, and is traced once."""

import dataclasses
import math
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf

from benchmarks.costs import flops
from benchmarks.costs.count import products_of, products_of_hlo
from benchmarks.harness.workload import BASE3, Shape, config_of, masked_batch, windows
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
DISTANCES = SHAPE.mem_len + 2 * SHAPE.seq_len - 1


def trace(shape=SHAPE, **settings):
    """(products of a training step, its model)."""
    model, batch = ours.pretrainer(shape, config_of(shape, **settings))
    graph = tf.function(model.train_step).get_concrete_function(batch).graph
    return list(products_of(graph)), model


@pytest.fixture(scope="module")
def products():
    return trace()[0]


def check(products, formula):
    assert sum(product.flops for product in products) == flops.total(formula)
    elements = sum(math.prod(shape) for product in products for shape in product.shapes)
    assert elements == sum(product.elements for product in formula)


def test_step_computes_what_the_formula_says(products):
    check(products, flops.computed(SHAPE))


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


def test_query_stream_is_at_targets_only(products):
    """No product has a row for every token where its result says that it is of the query stream."""
    B, N, T, P = SHAPE.batch_size, SHAPE.num_heads, SHAPE.seq_len, SHAPE.num_predict
    K = SHAPE.mem_len + T
    scores = [p.shapes[-1] for p in products if p.shapes[-1] in ((B, N, T, K), (B, N, P, K))]
    # Scores and the gradient of dropped probabilities, of each stream, in every layer.
    assert scores.count((B, N, T, K)) == scores.count((B, N, P, K)) == 2 * SHAPE.num_layers
    logits = [p for p in products if SHAPE.vocab_size in p.shapes[-1]]
    assert {shape for p in logits for shape in p.shapes} <= {
        (B * P, SHAPE.d_model),
        (SHAPE.vocab_size, SHAPE.d_model),
        (B * P, SHAPE.vocab_size),
    }


def test_position_keys_are_projected_once_for_all_rows(products):
    width = SHAPE.d_model
    projections = [p for p in products if p.shapes[-1] == (DISTANCES, width)]
    assert len(projections) == 2 * SHAPE.num_layers  # Sine and cosine halves.
    assert not [p for p in products if (SHAPE.batch_size * DISTANCES, width) in p.shapes]


def test_memory_gets_no_gradient(products):
    rows = SHAPE.batch_size * SHAPE.mem_len
    results = [p.shapes[-1] for p in products if p.shapes[-1][0] == rows]
    # Forward only: a key and a value product in every layer.
    assert results == [(rows, SHAPE.d_model)] * 2 * SHAPE.num_layers


@pytest.mark.parametrize("recompute", ["attention", "block"])
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


def test_step_is_traced_once():
    model, batch = ours.pretrainer(SHAPE, config_of(SHAPE))
    # Python code runs only while a graph is traced.
    model.train_step = step = mock.Mock(wraps=model.train_step)
    other = {name: tf.constant(value) for name, value in windows(SHAPE, seed=1).items()}
    data = tf.data.Dataset.from_tensor_slices(
        {name: tf.stack([batch[name], other[name]]) for name in batch}
    )
    model.fit(data.repeat(), steps_per_epoch=2, epochs=2, verbose=0)
    step.assert_called_once()


def test_formula_of_the_reference_shape():
    """A step of base3 needs about 240 GFLOP; a step of the same without training far less."""
    assert flops.total(flops.necessary(BASE3)) == pytest.approx(240e9, rel=0.01)
    forward = flops.total(flops.necessary(BASE3, training=False))
    L, D, F = BASE3.num_layers, BASE3.d_model, BASE3.d_inner
    T, K, B = BASE3.seq_len, BASE3.seq_len + BASE3.mem_len, BASE3.batch_size
    by_hand = 4 * B * T * D * D + 4 * B * K * D * D
    by_hand += 6 * B * T * K * D + 4 * B * T * D * F
    assert forward == L * by_hand


def test_masks_of_the_peers_follow_one_order():
    """A target is hidden from itself and from everything before it; the rest sees no target."""
    batch = masked_batch(SHAPE)
    is_target = batch["is_target"].astype(bool)
    assert (is_target.sum(1) == SHAPE.num_predict).all()
    for hidden, target in zip(batch["is_hidden"].astype(bool), is_target, strict=True):
        assert not hidden[:, ~target].any()
        assert hidden[np.ix_(~target, target)].all()
        among = hidden[np.ix_(target, target)]
        assert among.diagonal().all()
        # Of two targets exactly one is hidden from the other: a total order.
        assert (among ^ among.T ^ np.eye(SHAPE.num_predict, dtype=bool)).all()
