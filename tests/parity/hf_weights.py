"""Copies the weights of an HF PyTorch XLNet, with any values, into ours; for parity tests."""

import numpy as np


def tiny_hf_config(**changes):
    from transformers import XLNetConfig

    settings = dict(
        vocab_size=53,
        d_model=24,
        n_layer=3,
        n_head=3,
        d_inner=29,
        ff_activation="gelu_new",
        untie_r=True,
        dropout=0.0,
        mem_len=7,
        reuse_len=5,
        bi_data=False,
        clamp_len=-1,
        initializer_range=0.3,
    )
    return XLNetConfig(**{**settings, **changes})


def randomize(model, seed=0):
    """Every parameter random, biases and layer norms too."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            noise = torch.randn(parameter.shape, generator=generator) * 0.2
            parameter.copy_(parameter + noise)


def copy_encoder(hf, encoder):
    """hf: XLNetModel; encoder: XLNetEncoder of the same shape, built."""

    def assign(variable, tensor):
        variable.assign(tensor.detach().numpy().reshape(variable.shape))

    assign(encoder.word_embedding.embeddings, hf.word_embedding.weight)
    assign(encoder.mask_embedding, hf.mask_emb)
    for source, block in zip(hf.layer, encoder.blocks, strict=True):
        attention, rel = block.attention, source.rel_attn
        for letter, name in zip("qkvro", ("query", "key", "value", "position", "output"), strict=True):
            assign(getattr(attention, f"{name}_kernel"), getattr(rel, letter))
        assign(attention.segment_embedding, rel.seg_embed)
        biases = encoder.shared_biases or attention.biases
        assign(biases.content, rel.r_w_bias)
        assign(biases.position, rel.r_r_bias)
        assign(biases.segment, rel.r_s_bias)
        for norm, theirs in (
            (block.attention_norm, rel.layer_norm),
            (block.feed_forward_norm, source.ff.layer_norm),
        ):
            assign(norm.gamma, theirs.weight)
            assign(norm.beta, theirs.bias)
        feed_forward = block.feed_forward
        assign(feed_forward.inner_kernel, source.ff.layer_1.weight.T)
        assign(feed_forward.inner_bias, source.ff.layer_1.bias)
        assign(feed_forward.outer_kernel, source.ff.layer_2.weight.T)
        assign(feed_forward.outer_bias, source.ff.layer_2.bias)


def our_config(hf_config, **data):
    from official.xlnet.config import XLNetConfig

    return XLNetConfig.from_dict(
        {
            "model": {
                "vocab_size": hf_config.vocab_size,
                "num_layers": hf_config.n_layer,
                "d_model": hf_config.d_model,
                "num_heads": hf_config.n_head,
                "d_inner": hf_config.d_inner,
                "activation": {"gelu_new": "gelu", "gelu": "gelu_exact", "relu": "relu"}[
                    hf_config.ff_activation
                ],
                "untie_r": hf_config.untie_r,
                "attention_type": hf_config.attn_type,
                "clamp_len": max(0, hf_config.clamp_len),
                "mem_len": hf_config.mem_len or 0,
                "dropout": 0.0,
                "dropatt": 0.0,
            },
            "data": {"reuse_len": hf_config.reuse_len or 0, **data},
        }
    )


def tie_biases(hf):
    """What `untie_r=False` means: all layers share the biases of layer 0."""
    first = hf.layer[0].rel_attn
    for layer in hf.layer[1:]:
        for name in ("r_w_bias", "r_r_bias", "r_s_bias"):
            setattr(layer.rel_attn, name, getattr(first, name))


def random_batch(seed, batch=3, tokens=11, targets=4, vocab_size=53, padding=False, segments=3):
    rng = np.random.default_rng(seed)
    order = np.zeros((batch, tokens), np.int32)
    positions = np.zeros((batch, targets), np.int32)
    is_padding = np.zeros((batch, tokens), bool)
    for b in range(batch):
        num_padding = int(rng.integers(0, 4)) if padding else 0
        is_padding[b, :num_padding] = True
        positions[b] = rng.choice(np.arange(num_padding, tokens), targets, replace=False)
        order[b, positions[b]] = 1 + rng.permutation(targets)
    return {
        "token_ids": rng.integers(9, vocab_size, (batch, tokens)).astype(np.int32),
        "segment_ids": np.sort(rng.integers(0, segments, (batch, tokens))).astype(np.int32),
        "order": order,
        "target_positions": positions,
        "is_padding": is_padding,
    }


def hf_inputs(batch, reversed_rows=False):
    """The same batch as HF's masks: perm_mask 1 means "may not attend"."""
    import torch

    order, positions = batch["order"], batch["target_positions"]
    size, tokens = order.shape
    # Attend where order[j] <= order[i] for content; HF derives both streams from one mask in
    # which i may not see itself, so write "strictly before, or both are context (order 0)".
    before = order[:, None, :] < order[:, :, None]
    context = (order[:, None, :] == 0) & (order[:, :, None] == 0)
    perm_mask = 1.0 - (before | context)
    mapping = np.zeros((size, positions.shape[1], tokens), np.float32)
    for b in range(size):
        mapping[b, np.arange(positions.shape[1]), positions[b]] = 1.0
    return {
        "input_ids": torch.tensor(batch["token_ids"]).long(),
        "token_type_ids": torch.tensor(batch["segment_ids"]).long(),
        "perm_mask": torch.tensor(perm_mask, dtype=torch.float32),
        "target_mapping": torch.tensor(mapping),
        "input_mask": torch.tensor(batch["is_padding"], dtype=torch.float32),
    }
