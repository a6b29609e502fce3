"""Attention probabilities of a text, computed from a layer's weights and its input.

The encoder never hands its probabilities out. Here they are computed again, for one text, by the
equation of `attention` written out plainly; a test compares what they would give with what the
layer gives.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import tensorflow as tf

from official.xlnet.checkpoints.model_directory import restore
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.errors import DataError
from official.xlnet.modeling.layers.relative_attention import RelativeAttention, RelativeBiases
from official.xlnet.modeling.networks.xlnet_encoder import XLNetEncoder
from official.xlnet.tokenization.special_tokens import CLS_ID, SEGMENT_A, SEGMENT_CLS, SEP_ID
from official.xlnet.tokenization.tokenizer import load_tokenizer


@dataclasses.dataclass(frozen=True)
class AttentionMaps:
    """What every token of a text attends to.

    Attributes:
      pieces: the tokens, SEP and CLS at the end.
      weights: float32 [L, N, T, T]; `weights[l, n, i, j]` is what head n of layer l gives token j
        where token i looks.
    """

    pieces: list[str]
    weights: np.ndarray


def attention_maps(model_dir: str, text: str, max_tokens: int = 128) -> AttentionMaps:
    """Reads a text as a fine-tuned model does, every token seeing all, and records attention.

    Args:
      model_dir: a model directory.
      text: the text; SEP and CLS are added.
      max_tokens: what is longer is cut.

    Raises:
      ConfigError, DataError: the model cannot be read, or the text is empty.
    """
    config = XLNetConfig.load(model_dir)
    tokenizer = load_tokenizer(model_dir)
    ids = tokenizer.encode(text)[:max_tokens]
    if not ids:
        raise DataError(f"expected a text, got {text!r}")
    ids = [*ids, SEP_ID, CLS_ID]
    # A memory of every token is the input of every layer.
    config.model = dataclasses.replace(config.model, mem_len=len(ids))
    encoder = XLNetEncoder(config, reuse_len=0)
    encoder.build()
    restore(model_dir, encoder=encoder)
    segment_ids = [SEGMENT_A] * (len(ids) - 1) + [SEGMENT_CLS]
    hidden_LBTD = encoder(
        {"token_ids": tf.constant([ids]), "segment_ids": tf.constant([segment_ids])}
    )["memory"]
    weights = [
        attention_weights(
            block.attention,
            encoder.shared_biases,
            hidden_BTD[0].numpy(),
            np.array(segment_ids),
            config.model.clamp_len,
        )
        for block, hidden_BTD in zip(encoder.blocks, hidden_LBTD, strict=True)
    ]
    return AttentionMaps([tokenizer.id_to_piece(i) for i in ids], np.stack(weights))


def attention_weights(
    attention: RelativeAttention,
    shared_biases: RelativeBiases | None,
    hidden_TD: np.ndarray,
    segment_T: np.ndarray,
    clamp_len: int = 0,
) -> np.ndarray:
    """softmax_j(score)(i, j) of a row that sees all of itself; see `attention` for the score.

    Args:
      attention: a layer with its weights.
      shared_biases: the biases where `untie_r` is off.
      hidden_TD: float32 [T, D], the layer's input.
      segment_T: int [T].
      clamp_len: see `ModelConfig`.

    Returns:
      float32 [N, T, T].
    """
    biases = shared_biases or attention.biases
    num_tokens, width = hidden_TD.shape
    distance_TT = np.arange(num_tokens)[:, None] - np.arange(num_tokens)
    if clamp_len:
        distance_TT = np.clip(distance_TT, -clamp_len, clamp_len)
    angle = distance_TT[..., None] / 10000.0 ** (np.arange(0, width, 2) / width)
    sinusoid_TTD = np.concatenate([np.sin(angle), np.cos(angle)], axis=-1)
    query_NTH = np.einsum("td,dnh->nth", hidden_TD, attention.query_kernel.numpy())
    key_NTH = np.einsum("td,dnh->nth", hidden_TD, attention.key_kernel.numpy())
    content, position, segment = (
        query_NTH + bias.numpy()[:, None]
        for bias in (biases.content, biases.position, biases.segment)
    )
    # (q + r_r)·r without the [T, T, N, H] tensor of r.
    looked_NTD = np.einsum("nth,dnh->ntd", position, attention.position_kernel.numpy())
    score_NTT = np.einsum("nih,njh->nij", content, key_NTH)
    score_NTT += np.einsum("nid,ijd->nij", looked_NTD, sinusoid_TTD)
    kinds_NTS = np.einsum("nth,snh->nts", segment, attention.segment_embedding.numpy())
    is_different_TT = (segment_T[:, None] != segment_T).astype(int)
    score_NTT += np.take_along_axis(
        kinds_NTS, np.broadcast_to(is_different_TT, score_NTT.shape), axis=2
    )
    score_NTT /= np.sqrt(attention.d_head)
    weights = np.exp(score_NTT - score_NTT.max(axis=-1, keepdims=True))
    return (weights / weights.sum(axis=-1, keepdims=True)).astype(np.float32)
