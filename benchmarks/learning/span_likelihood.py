"""Joint log-likelihood of multi-token spans, as "New York" in section 2.6 of the paper.

In each window one span of several tokens is hidden and all other tokens are given. Every model is
read in two ways:

    log p(New York | is a city) = log p(New | …) + log p(York | New, …)      left to right
                                ≈ log p(New | …) + log p(York | …)           from the context alone

Permutation language modeling reads either way in one pass of the query stream. Denoising reads the
second in one pass, with the span masked, and the first in one pass for each token: the span is
masked, its first token predicted and put in, then the next. All models get the same windows, in
order, with the memory of the previous windows.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import tensorflow as tf

from official.xlnet.data.pretraining_dataset import pretraining_dataset
from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
from official.xlnet.tokenization.special_tokens import MASK_ID, SEP_ID

MAX_TOKENS = 3  # Of a span: as many as half a window of the recipes has targets.
READINGS = ("left to right", "context alone")
_MIN_TOKENS = 2
_MAX_WORDS = 3  # Maximum number of words of a span.


# Chooses (first position, number of tokens) in a window, of its token ids, starts of words, and
# tokens that can be targets; see `choose_span`.
Choice = Callable[[np.ndarray, np.ndarray, np.ndarray, np.random.Generator], tuple[int, int]]


def span_losses(
    model: XLNetPretrainer,
    data_dir: str,
    batch_size: int,
    seed: int = 0,
    choose: Choice | None = None,
) -> dict[str, np.ndarray]:
    """Computes the negative log-likelihood of each token of a span in each held-out window.

    Args:
      model: model trained by permutation or denoising; its objective determines how spans are
        predicted.
      data_dir: forward data set; `batch_size` must divide the number of held-out lanes.
      batch_size: number of windows of a batch.
      seed: random seed of the choice of spans.
      choose: chooses the span of a window. Default: `choose_span`.

    Returns:
      {reading: float64 [W, MAX_TOKENS]}, in nats; NaN after the end of a span.
    """
    config = model.config
    memory = None
    if config.model.mem_len:
        shape = [config.model.num_layers, batch_size, config.model.mem_len, config.model.d_model]
        memory = tf.zeros(shape)
    losses = []
    for batch in pretraining_dataset(data_dir, batch_size, "heldout", epochs=1):
        windows = zip(
            batch["token_ids"].numpy(),
            batch["is_word_start"].numpy(),
            batch["can_be_target"].numpy(),
            batch["window_id"].numpy(),
            strict=True,
        )
        spans = [
            (choose or choose_span)(*window[:3], np.random.default_rng([seed, window[3]]))
            for window in windows
        ]
        start_B, length_B = np.array(spans, np.int32).T
        found_RBP, memory = _losses_and_memory(model, batch, start_B, length_B, memory)
        is_real_BP = np.arange(MAX_TOKENS) < length_B[:, None]
        losses.append(np.where(is_real_BP, found_RBP, np.nan))
    return dict(zip(READINGS, np.concatenate(losses, axis=1), strict=True))


def choose_span(
    token_ids_T: np.ndarray,
    is_word_start_T: np.ndarray,
    can_be_target_T: np.ndarray,
    rng: np.random.Generator,
) -> tuple[int, int]:
    """Samples a span of one to three whole words and two or three tokens before the first SEP.

    Args:
      token_ids_T: int [T].
      is_word_start_T: bool [T].
      can_be_target_T: bool [T].
      rng: random generator.

    Returns:
      First position and number of tokens; (0, 0) if the window has no such span.
    """
    last = int(np.flatnonzero(token_ids_T == SEP_ID)[0])
    starts = np.flatnonzero(is_word_start_T[:last])
    spans = [
        (int(start), int(end - start))
        for words in range(1, _MAX_WORDS + 1)
        for start, end in zip(starts, starts[words:], strict=False)
        if _MIN_TOKENS <= end - start <= MAX_TOKENS and can_be_target_T[start:end].all()
    ]
    return spans[rng.integers(len(spans))] if spans else (0, 0)


def choose_token(
    token_ids_T: np.ndarray,
    is_word_start_T: np.ndarray,
    can_be_target_T: np.ndarray,
    rng: np.random.Generator,
) -> tuple[int, int]:
    """Samples one token before the first SEP, whatever it is a part of; see `choose_span`."""
    last = int(np.flatnonzero(token_ids_T == SEP_ID)[0])
    positions = np.flatnonzero(can_be_target_T[:last])
    return (int(rng.choice(positions)), 1) if len(positions) else (0, 0)


@tf.function(autograph=False)
def _losses_and_memory(model, batch, start_B, length_B, memory):
    """Scores the spans of a batch, then processes the unmasked windows to update the memory."""
    config = model.config
    token_ids_BT = batch["token_ids"]
    size, seq_len = token_ids_BT.shape
    offset_P = tf.range(MAX_TOKENS)
    positions_BP = tf.minimum(start_B[:, None] + offset_P, seq_len - 1)
    labels_BP = tf.gather(token_ids_BT, positions_BP, batch_dims=1)
    step_BT = tf.range(seq_len) - start_B[:, None] + 1
    in_span_BT = (step_BT >= 1) & (step_BT <= length_B[:, None])
    inputs = {"token_ids": token_ids_BT, "segment_ids": batch["segment_ids"]}
    recalled = {}
    if memory is not None:
        recalled = {"memory": memory, "memory_length": batch["context_length"]}

    def losses_of(**asked):
        logits_BPV = model({**inputs, **asked, **recalled})["logits"]
        return tf.nn.sparse_softmax_cross_entropy_with_logits(labels_BP, logits_BPV)

    if config.objective.kind == "denoising":

        def masked_from(number):
            is_masked_BT = in_span_BT & (step_BT > number)
            token_ids = tf.where(is_masked_BT, MASK_ID, token_ids_BT)
            return losses_of(token_ids=token_ids, content_positions=positions_BP)

        passes = [masked_from(number) for number in range(MAX_TOKENS)]
        in_order_BP = tf.stack([found[:, place] for place, found in enumerate(passes)], axis=1)
        losses_RBP = tf.stack([in_order_BP, passes[0]])
    else:
        orders = tf.where(in_span_BT, step_BT, 0), tf.cast(in_span_BT, tf.int32)
        read = [losses_of(order=order, target_positions=positions_BP) for order in orders]
        losses_RBP = tf.stack(read)
    if memory is not None:
        is_second_half_T = tf.range(seq_len) >= config.data.reuse_len
        inputs["order"] = tf.tile(tf.cast(is_second_half_T, tf.int32)[None], [size, 1])
        memory = model({**inputs, **recalled})["memory"]
    return losses_RBP, memory
