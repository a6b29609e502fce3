"""An HF PyTorch XLNet and ours with the same weights and the same inputs, for parity tests."""

import numpy as np

from tests.helpers.tiny import LAYERS, MEMORY, REUSE, VOCAB, WIDTH, tiny_config

ACTIVATIONS = {"gelu_new": "gelu", "gelu": "gelu_exact", "relu": "relu"}


def hf_model(seed=0, **changes):
    """A tiny `XLNetLMHeadModel` in which every parameter is random."""
    import torch
    from transformers import XLNetConfig, XLNetLMHeadModel

    settings = {
        "vocab_size": VOCAB,
        "d_model": WIDTH,
        "n_layer": LAYERS,
        "n_head": 2,
        "d_inner": 29,
        "ff_activation": "gelu_new",
        "dropout": 0.0,
        "mem_len": MEMORY,
        "reuse_len": REUSE,
        "untie_r": True,
        "bi_data": False,
        "clamp_len": -1,
    }
    model = XLNetLMHeadModel(XLNetConfig(**{**settings, **changes})).eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator) * 0.25
            parameter.copy_(noise + ("layer_norm.weight" in name))
    if not model.config.untie_r:
        tie_biases(model.transformer)
    return model


def tie_biases(hf):
    """What `untie_r=False` means: all layers share the biases of layer 0."""
    first = hf.layer[0].rel_attn
    for layer in hf.layer[1:]:
        for name in ("r_w_bias", "r_r_bias", "r_s_bias"):
            setattr(layer.rel_attn, name, getattr(first, name))


def our_config(hf_config):
    """The same network, as our configuration."""
    return tiny_config(
        vocab_size=hf_config.vocab_size,
        num_layers=hf_config.n_layer,
        d_model=hf_config.d_model,
        num_heads=hf_config.n_head,
        d_inner=hf_config.d_inner,
        activation=ACTIVATIONS[hf_config.ff_activation],
        untie_r=hf_config.untie_r,
        attention_type=hf_config.attn_type,
        clamp_len=max(0, hf_config.clamp_len),
        mem_len=hf_config.mem_len or 0,
        reuse_len=hf_config.reuse_len or 0,
    )


def pairs(hf, ours):
    """Yields (name, variable, parameter, whether it is transposed) for every variable once.

    Args:
      hf: `XLNetLMHeadModel`.
      ours: `XLNetPretrainer` of the same shape.
    """
    encoder, hf_encoder = ours.encoder, hf.transformer
    yield "word_embedding", encoder.word_embedding.embeddings, hf_encoder.word_embedding.weight, 0
    yield "mask_embedding", encoder.mask_embedding, hf_encoder.mask_emb, 0
    yield "lm_bias", ours.lm_head.bias, hf.lm_loss.bias, 0
    for number, (block, layer) in enumerate(zip(encoder.blocks, hf_encoder.layer, strict=True)):
        attention, rel = block.attention, layer.rel_attn
        for letter, name in zip(
            "qkvro", ("query", "key", "value", "position", "output"), strict=True
        ):
            yield f"{number}/{name}", getattr(attention, f"{name}_kernel"), getattr(rel, letter), 0
        yield f"{number}/segment", attention.segment_embedding, rel.seg_embed, 0
        if number == 0 or not encoder.shared_biases:
            biases = encoder.shared_biases or attention.biases
            yield f"{number}/r_w", biases.content, rel.r_w_bias, 0
            yield f"{number}/r_r", biases.position, rel.r_r_bias, 0
            yield f"{number}/r_s", biases.segment, rel.r_s_bias, 0
        for name, norm, theirs in (
            ("attention_norm", block.attention_norm, rel.layer_norm),
            ("feed_forward_norm", block.feed_forward_norm, layer.ff.layer_norm),
        ):
            yield f"{number}/{name}/gamma", norm.gamma, theirs.weight, 0
            yield f"{number}/{name}/beta", norm.beta, theirs.bias, 0
        feed_forward, first, second = block.feed_forward, layer.ff.layer_1, layer.ff.layer_2
        yield f"{number}/inner_kernel", feed_forward.inner_kernel, first.weight, 1
        yield f"{number}/inner_bias", feed_forward.inner_bias, first.bias, 0
        yield f"{number}/outer_kernel", feed_forward.outer_kernel, second.weight, 1
        yield f"{number}/outer_bias", feed_forward.outer_bias, second.bias, 0


def as_ours(tensor, variable, transposed):
    """A parameter, or its gradient, in the shape of our variable."""
    array = tensor.detach().numpy()
    return (array.T if transposed else array).reshape(variable.shape)


def copy_weights(hf, ours):
    """Copies every parameter; none of ours and none of theirs may be left over."""
    left = {id(variable) for variable in ours.trainable_variables}
    theirs = {id(parameter) for parameter in hf.parameters()}
    for _, variable, parameter, transposed in pairs(hf, ours):
        variable.assign(as_ours(parameter, variable, transposed))
        left.remove(id(variable))
        theirs.remove(id(parameter))
    assert not left and not theirs


def hf_inputs(inputs):
    """Our inputs as HF's: `perm_mask` 1 means "may not attend"."""
    import torch

    positions = inputs["target_positions"]
    size, tokens = inputs["token_ids"].shape
    if "perm_mask" in inputs:
        visible = ~inputs["perm_mask"]
    else:
        # HF has one mask for both streams and opens the content stream's diagonal. So what is of
        # the same step may see each other, but for targets, which have a step of their own.
        order = inputs["order"]
        visible = order[:, None, :] <= order[:, :, None]
        for b in range(size):
            visible[b, positions[b], positions[b]] = False
    mapping = np.zeros((size, positions.shape[1], tokens), np.float32)
    for b in range(size):
        mapping[b, np.arange(positions.shape[1]), positions[b]] = 1.0
    result = {
        "input_ids": torch.tensor(inputs["token_ids"]).long(),
        "token_type_ids": torch.tensor(inputs["segment_ids"]).long(),
        "perm_mask": torch.tensor(~visible, dtype=torch.float32),
        "target_mapping": torch.tensor(mapping),
    }
    if "is_padding" in inputs:
        result["input_mask"] = torch.tensor(inputs["is_padding"], dtype=torch.float32)
    if "memory" in inputs:
        memory = torch.tensor(inputs["memory"])
        result["mems"] = [layer.transpose(0, 1) for layer in memory]
    return result


def run_hf(hf, inputs, labels):
    """Content, query, memory and logits of HF, batch first, and the gradients of its loss.

    With `attn_type="uni"` HF adds the masks of a batch to that of one row in place, which works
    for one row only; so rows run one by one, and gradients add up.

    Returns:
      A dictionary of arrays, and gradients of mean cross entropy by the names of `pairs`.
    """
    import torch

    rows = len(labels)
    step = 1 if hf.config.attn_type == "uni" else rows
    hf.zero_grad()
    parts = []
    for start in range(0, rows, step):
        chosen = slice(start, start + step)
        part = {
            name: value[:, chosen] if name == "memory" else value[chosen]
            for name, value in inputs.items()
        }
        out = hf(**hf_inputs(part), use_mems=True, output_hidden_states=True)
        loss = torch.nn.functional.cross_entropy(
            out.logits.reshape(-1, out.logits.shape[-1]),
            torch.tensor(labels[chosen]).long().reshape(-1),
            reduction="sum",
        )
        (loss / labels.size).backward()
        content, query = out.hidden_states[-2:]
        memory = torch.stack([layer.transpose(0, 1) for layer in out.mems], dim=1)
        parts.append((content, query, memory, out.logits, loss.reshape(1)))
    content, query, memory, logits, loss = (
        torch.cat(part).detach().numpy() for part in zip(*parts, strict=True)
    )
    return {
        "content": content,
        "query": query,
        "memory": memory.swapaxes(0, 1),
        "logits": logits,
        "loss": loss.sum() / labels.size,
    }
