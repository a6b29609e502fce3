"""Ours against HF transformers' PyTorch XLNet: outputs and gradients, with the same weights."""

import numpy as np
import pytest
import tensorflow as tf

from official.xlnet.modeling.kernels.device_forms import built_for
from official.xlnet.modeling.layers.losses import cross_entropy_sum
from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
from tests.helpers.tiny import MEMORY, VOCAB, random_inputs

pytest.importorskip("torch")
pytest.importorskip("transformers")
from tests.parity import hf_weights

pytestmark = pytest.mark.slow
TOLERANCE = 1e-4

# name: (HF settings, `random_inputs` arguments)
CASES = {
    "no memory": ({}, {}),
    "memory": ({}, {"memory": MEMORY}),
    "padding": ({}, {"padding": True}),
    "padding and memory": ({}, {"padding": True, "memory": 3, "order": "all"}),
    "order of all tokens": ({"mem_len": 0}, {"order": "all", "tokens": 17}),
    "two halves": ({"reuse_len": 6}, {"order": "halves", "memory": MEMORY}),
    "both directions": ({"bi_data": True}, {"directions": True, "batch": 4}),
    "both directions and memory": (
        {"bi_data": True, "clamp_len": 6},
        {"directions": True, "batch": 6, "memory": MEMORY, "padding": True, "order": "halves"},
    ),
    "untie_r off": ({"untie_r": False}, {"memory": MEMORY}),
    "clamp_len": ({"clamp_len": 4}, {"memory": MEMORY, "tokens": 11}),
    "uni": ({"attn_type": "uni"}, {"order": "halves"}),
    "uni and memory": (
        {"attn_type": "uni", "clamp_len": 9},
        {"order": "all", "memory": MEMORY, "padding": True},
    ),
    "exact gelu": ({"ff_activation": "gelu"}, {}),
    "relu": ({"ff_activation": "relu"}, {"memory": 2}),
    "memory longer than its limit": ({"reuse_len": 0, "mem_len": 3}, {"memory": MEMORY}),
    "several blocks": ({"mem_len": 0}, {"tokens": 281, "memory": 31, "padding": True}),
}


def sees(inputs, is_uni):
    """Whether every target sees something: where one sees nothing, HF lets it see everything."""
    if "memory" in inputs:
        return True
    order, positions = inputs["order"], inputs["target_positions"]
    target_order = np.take_along_axis(order, positions, axis=1)
    visible = order[:, None] < target_order[:, :, None]
    if is_uni:
        visible &= np.arange(order.shape[1]) < positions[:, :, None]
    if "is_padding" in inputs:
        visible &= ~inputs["is_padding"][:, None]
    return visible.any(axis=2).all()


def build(settings, arguments, seed=0):
    """Both models with the same weights, inputs that no row is blind in, and labels."""
    hf = hf_weights.hf_model(seed, **settings)
    ours = XLNetPretrainer(hf_weights.our_config(hf.config))
    hf_weights.copy_weights(hf, ours)
    is_uni = hf.config.attn_type == "uni"
    tries = (random_inputs(seed + n, **arguments) for n in range(100))
    inputs = next(x for x in tries if sees(x, is_uni))
    shape = inputs["target_positions"].shape
    labels = np.random.default_rng(seed + 1).integers(9, VOCAB, shape).astype(np.int32)
    return hf, ours, inputs, labels


def step_of(model, training):
    """A function of inputs and labels: outputs, mean loss and gradients."""

    def step(inputs, labels):
        with tf.GradientTape() as tape:
            outputs = model(inputs, training=training)
            loss = cross_entropy_sum(outputs["logits"], labels, tf.ones(labels.shape))
            loss /= labels.shape.num_elements()
        return outputs, loss, tape.gradient(loss, model.trainable_variables)

    return step


def compare(hf, ours, inputs, labels, outputs, loss, gradients):
    wanted = hf_weights.run_hf(hf, inputs, labels)
    is_real = ~inputs.get("is_padding", np.zeros(inputs["token_ids"].shape, bool))
    np.testing.assert_allclose(loss, wanted["loss"], atol=TOLERANCE)
    for name in ("query", "logits"):
        np.testing.assert_allclose(outputs[name], wanted[name], atol=TOLERANCE, err_msg=name)
    # What a padding token's own row holds is nobody's business, and differs.
    content = outputs["content"].numpy()
    np.testing.assert_allclose(content[is_real], wanted["content"][is_real], atol=TOLERANCE)

    if ours.config.model.mem_len:
        reused = ours.config.data.reuse_len or inputs["token_ids"].shape[1]
        seen = inputs["memory"].shape[2] if "memory" in inputs else 0
        filled = np.concatenate([np.ones([len(labels), seen], bool), is_real[:, :reused]], axis=1)
        filled = filled[:, -ours.config.model.mem_len :]
        memory = outputs["memory"].numpy()
        width = filled.shape[1]
        assert wanted["memory"].shape[2] == width
        assert not memory[:, :, : memory.shape[2] - width].any()
        np.testing.assert_allclose(
            memory[:, :, -width:][:, filled], wanted["memory"][:, filled], atol=TOLERANCE
        )

    by_variable = {
        id(variable): tf.convert_to_tensor(gradient).numpy()
        for variable, gradient in zip(ours.trainable_variables, gradients, strict=True)
    }
    for name, variable, parameter, transposed in hf_weights.pairs(hf, ours):
        gradient = hf_weights.as_ours(parameter.grad, variable, transposed)
        assert np.abs(gradient).max() > 0, name
        np.testing.assert_allclose(
            by_variable.pop(id(variable)), gradient, atol=TOLERANCE, err_msg=name
        )
    assert not by_variable


@pytest.mark.parametrize("kind", ["CPU", "TPU"])
@pytest.mark.parametrize("name", CASES)
def test_outputs_and_gradients_equal(name, kind):
    """In the forms of both kinds of device."""
    hf, ours, inputs, labels = build(*CASES[name])
    with built_for(kind):
        result = step_of(ours, training=False)(inputs, tf.constant(labels))
    compare(hf, ours, inputs, labels, *result)


@pytest.mark.parametrize(
    ("name", "whole_step"),
    [
        ("both directions and memory", False),
        ("uni and memory", True),
        ("several blocks", False),
    ],
)
def test_compiled_training_step_equals(name, whole_step):
    """Kernels, their hand-written gradients, and (`whole_step`) XLA for everything."""
    hf, ours, inputs, labels = build(*CASES[name], seed=2)
    step = tf.function(step_of(ours, training=True), jit_compile=whole_step)
    tensors = {key: tf.constant(value) for key, value in inputs.items()}
    tensors["dropout_seed"] = tf.constant([3, 5])
    result = step(tensors, tf.constant(labels))
    compare(hf, ours, inputs, labels, *result)


@pytest.mark.parametrize("seed", range(3))
def test_perm_mask_equals(seed):
    """Any mask that HF takes, also one that no order has: both streams, and all gradients."""
    arguments = {"memory": MEMORY, "padding": True} if seed else {}
    hf, ours, inputs, labels = build({}, arguments, seed)
    inputs.pop("order")
    rng = np.random.default_rng(seed)
    batch, tokens = inputs["token_ids"].shape
    perm_mask = rng.random([batch, tokens, tokens]) < 0.5
    # HF believes the mask where a target would see itself; ours never lets it.
    rows, targets = np.arange(batch)[:, None], inputs["target_positions"]
    perm_mask[rows, targets, targets] = True
    # A target that sees nothing would see everything there.
    others = (targets + 1) % tokens
    perm_mask[rows, targets, np.where(others < 4, 4, others)] = False
    inputs["perm_mask"] = perm_mask
    result = step_of(ours, training=False)(inputs, tf.constant(labels))
    compare(hf, ours, inputs, labels, *result)
    perm_mask[rows, targets, targets] = False
    same = ours(inputs)
    np.testing.assert_array_equal(same["query"], result[0]["query"])
