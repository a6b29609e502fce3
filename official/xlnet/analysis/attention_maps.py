"""Attention maps: attention probabilities of all layers and heads for a text."""

from __future__ import annotations

import dataclasses

import numpy as np
import tensorflow as tf

from official.xlnet.checkpoints.model_directory import load_encoder
from official.xlnet.errors import DataError
from official.xlnet.tokenization.special_tokens import CLS_ID, SEGMENT_A, SEGMENT_CLS, SEP_ID
from official.xlnet.tokenization.tokenizer import load_tokenizer


@dataclasses.dataclass(frozen=True)
class AttentionMaps:
    """Attention probabilities of a text.

    Attributes:
      pieces: the tokens, followed by SEP and CLS.
      weights: float32 [L, N, T, T]; `weights[l, n, i, j]` is the attention probability from
        token i (query) to token j (key) in head n of layer l.
    """

    pieces: list[str]
    weights: np.ndarray


def attention_maps(model_dir: str, text: str, max_tokens: int = 128) -> AttentionMaps:
    """Computes the attention maps of a text, with bidirectional attention as in fine-tuning.

    Args:
      model_dir: the model directory.
      text: the input text; SEP and CLS are appended.
      max_tokens: maximum number of tokens; longer texts are truncated.

    Returns:
      The attention maps of all layers and heads.

    Raises:
      ConfigError: the configuration is missing or invalid.
      DataError: the checkpoint or vocabulary is missing or damaged, or the text is empty.

    Example:
      >>> attention_maps("runs/tiny/model", "The cat sat.").weights.shape
      (2, 4, 7, 7)
    """
    tokenizer = load_tokenizer(model_dir)
    ids = tokenizer.encode(text)[:max_tokens]
    if not ids:
        raise DataError(f"expected a text, got {text!r}")
    ids = [*ids, SEP_ID, CLS_ID]
    segment_ids = [SEGMENT_A] * (len(ids) - 1) + [SEGMENT_CLS]
    inputs = {"token_ids": tf.constant([ids]), "segment_ids": tf.constant([segment_ids])}
    outputs = load_encoder(model_dir)(inputs, return_attention_scores=True)
    weights_LNTT = outputs["attention_scores"][:, 0].numpy()
    return AttentionMaps([tokenizer.id_to_piece(i) for i in ids], weights_LNTT)
