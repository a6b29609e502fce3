"""Attention probabilities of a text, head by head."""

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
