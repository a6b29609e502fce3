"""A plain causal transformer with relative positions, in numpy: one row, no memory, no dropout."""

import numpy as np


def causal_logits(model, token_ids_T):
    """Logits [T, V] of every content row of our model's weights, each from tokens up to its own."""
    encoder, settings = model.encoder, model.config.model
    embedding_VD = encoder.word_embedding.embeddings.numpy().astype(np.float64)
    num_tokens, width, d_head = len(token_ids_T), settings.d_model, settings.d_head
    distance_TT = np.arange(num_tokens)[:, None] - np.arange(num_tokens)
    angle = distance_TT[..., None] / 10000.0 ** (np.arange(0, width, 2) / width)
    sinusoid_TTD = np.concatenate([np.sin(angle), np.cos(angle)], axis=-1)
    h = embedding_VD[token_ids_T]
    for block in encoder.blocks:
        attention = block.attention
        q, k, v = (
            np.einsum("td,dnh->nth", h, getattr(attention, f"{name}_kernel").numpy())
            for name in ("query", "key", "value")
        )
        r = np.einsum("ijd,dnh->nijh", sinusoid_TTD, attention.position_kernel.numpy())
        biases = attention.biases
        by_content = np.einsum("nih,njh->nij", q + biases.content.numpy()[:, None], k)
        by_position = np.einsum("nih,nijh->nij", q + biases.position.numpy()[:, None], r)
        score = np.where(distance_TT >= 0, (by_content + by_position) / np.sqrt(d_head), -np.inf)
        p = np.exp(score - score.max(-1, keepdims=True))
        p /= p.sum(-1, keepdims=True)
        attended = np.einsum("nij,njh,dnh->id", p, v, attention.output_kernel.numpy())
        h = _norm(h + attended, block.attention_norm)
        forward = block.feed_forward
        inner = _gelu(h @ forward.inner_kernel.numpy() + forward.inner_bias.numpy())
        changed = inner @ forward.outer_kernel.numpy() + forward.outer_bias.numpy()
        h = _norm(h + changed, block.feed_forward_norm)
    return h @ embedding_VD.T + model.lm_head.bias.numpy()


def _norm(x, layer):
    x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-12)
    return x * layer.gamma.numpy() + layer.beta.numpy()


def _gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
