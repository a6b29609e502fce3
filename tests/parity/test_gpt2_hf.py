"""Our GPT-2 against HF's, with the same random weights."""

import numpy as np
import pytest
import tensorflow as tf

from official.xlnet.configs.registry import NETWORKS
from tests.helpers.compare import path_of
from tests.helpers.tiny import tiny_config

pytest.importorskip("torch")
pytest.importorskip("transformers")

pytestmark = pytest.mark.slow
LAYERS, WIDTH, HEADS, INNER, VOCAB, POSITIONS = 3, 22, 2, 29, 97, 17


def encoder():
    sizes = {"num_layers": LAYERS, "d_model": WIDTH, "num_heads": HEADS, "d_inner": INNER}
    network = {"network": "gpt2", "attention_type": "uni", "mem_len": 0, "vocab_size": VOCAB}
    training = {"kind": "causal", "bidirectional": False, "max_positions": POSITIONS}
    ours = NETWORKS["gpt2"](tiny_config(**sizes, **network, **training, init_std=0.3))
    ours.build()
    return ours


def named(block):
    """The variables of a block by their names in it."""
    return {path_of(v).split("layer_", 1)[1].partition("/")[2]: v for v in block.variables}


def hf_model(seed):
    import torch
    from transformers import GPT2Config, GPT2Model

    torch.manual_seed(seed)
    sizes = {"n_embd": WIDTH, "n_layer": LAYERS, "n_head": HEADS, "n_inner": INNER}
    dropout = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    config = GPT2Config(
        vocab_size=VOCAB, n_positions=POSITIONS, layer_norm_epsilon=1e-12, **sizes, **dropout
    )
    model = GPT2Model(config).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(torch.randn_like(weight) * 0.4)
    return model


def copy_weights(hf, ours):
    """HF has the kernels of queries, keys and values in one matrix."""

    def array(x):
        return x.detach().numpy()

    ours.word_embedding.embeddings.assign(array(hf.wte.weight))
    (positions,) = ours._position_embedding_layer.variables
    positions.assign(array(hf.wpe.weight))
    for theirs, block in zip(hf.h, ours.blocks, strict=True):
        variables = named(block)
        heads, wide = [WIDTH, HEADS, WIDTH // HEADS], [HEADS, WIDTH // HEADS]
        values = {}
        kernels = np.split(array(theirs.attn.c_attn.weight), 3, axis=1)
        biases = np.split(array(theirs.attn.c_attn.bias), 3)
        for name, kernel, bias in zip(("query", "key", "value"), kernels, biases, strict=True):
            values[f"self_attention/{name}/kernel"] = kernel.reshape(heads)
            values[f"self_attention/{name}/bias"] = bias.reshape(wide)
        kernel = array(theirs.attn.c_proj.weight).reshape([*wide, WIDTH])
        values["self_attention/attention_output/kernel"] = kernel
        values["self_attention/attention_output/bias"] = array(theirs.attn.c_proj.bias)
        for name, layer in (("intermediate", theirs.mlp.c_fc), ("output", theirs.mlp.c_proj)):
            values[f"{name}/kernel"] = array(layer.weight)
            values[f"{name}/bias"] = array(layer.bias)
        norms = (("self_attention_layer_norm", theirs.ln_1), ("output_layer_norm", theirs.ln_2))
        for name, layer in norms:
            values[f"{name}/gamma"], values[f"{name}/beta"] = map(array, (layer.weight, layer.bias))
        assert values.keys() == variables.keys()
        for name, value in values.items():
            variables[name].assign(value)
    ours.output_norm.set_weights([array(hf.ln_f.weight), array(hf.ln_f.bias)])


def test_hidden_states_and_gradients_equal():
    import torch

    ours, hf = encoder(), hf_model(0)
    copy_weights(hf, ours)
    rng = np.random.default_rng(1)
    ids = rng.integers(9, VOCAB, [3, 13]).astype(np.int32)
    cost = rng.standard_normal([3, 13, WIDTH]).astype(np.float32)
    theirs = hf(input_ids=torch.tensor(ids).long(), output_hidden_states=True)
    (theirs.last_hidden_state * torch.tensor(cost)).sum().backward()
    with tf.GradientTape() as tape:
        outputs = ours(ids, return_hidden_states=True)
        loss = tf.reduce_sum(outputs["content"] * cost)
    for state, expected in zip(outputs["hidden_states"], theirs.hidden_states, strict=True):
        np.testing.assert_allclose(state, expected.detach().numpy(), atol=1e-4)
    (positions,) = ours._position_embedding_layer.variables
    gradient = tape.gradient(loss, positions)
    np.testing.assert_allclose(gradient, hf.wpe.weight.grad.numpy(), atol=1e-3)


def test_initial_weights_are_scaled_as_in_hf():
    import torch
    from transformers import GPT2Config, GPT2Model

    torch.manual_seed(0)
    tf.random.set_seed(0)
    sizes = {"n_embd": WIDTH, "n_layer": LAYERS, "n_head": HEADS, "n_inner": INNER}
    hf = GPT2Model(GPT2Config(vocab_size=VOCAB, initializer_range=0.3, **sizes))
    ours = encoder()
    pairs = [(ours.word_embedding.embeddings, hf.wte.weight)]
    for theirs, block in zip(hf.h, ours.blocks, strict=True):
        variables = named(block)
        pairs.append(
            (variables["self_attention/attention_output/kernel"], theirs.attn.c_proj.weight)
        )
        pairs.append((variables["output/kernel"], theirs.mlp.c_proj.weight))
        pairs.append((variables["intermediate/kernel"], theirs.mlp.c_fc.weight))
    for variable, weight in pairs:
        # A normal distribution that is cut at two standard deviations has 0.88 of them.
        ratio = np.std(variable) / 0.8796 / float(weight.detach().std())
        assert ratio == np.clip(ratio, 0.85, 1.15), variable.name
