"""Denoising: BERT's masked language model over the same encoder."""

from __future__ import annotations

import tensorflow as tf

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.modeling.objectives.base import (
    Objective,
    ObjectiveBatch,
    direction,
    draw_number,
    draw_targets,
    register_objective,
)
from official.xlnet.modeling.ops import stateless_random
from official.xlnet.tokenization.special_tokens import MASK_ID, NUM_SPECIAL

_STREAM = 1  # Of random_bits; targets are drawn from stream 0.


@register_objective("denoising")
def denoising_objective(config: XLNetConfig) -> Objective:
    """Masked language modeling (Devlin et al., BERT, section 3.1).

        loss = -Σ_t log p(x_t | corrupted text),    t over the targets, each for itself

    Targets are chosen as for permutation modeling, so the variants of BERT are settings:

    | | `data.target_unit` | `data.max_span` | `objective.target_draws` |
    |---|---|---|---|
    | BERT | `token` | 1 | 10 |
    | RoBERTa, a new mask each epoch | `token` | 1 | 0 |
    | whole words | `word` | 1 | |
    | n-grams | `word` | n | |
    | ERNIE, phrases as units | `word`, with `data.phrases` | 1 | |

    A target becomes `<mask>` with probability `mask_share`, any other piece with probability
    `random_share`, and stays what it is otherwise.

    Without memory everything sees everything. With memory the reuse part does not see what
    follows it, as in permutation modeling: what it left in memory would else have seen the
    targets of the next window.
    """
    settings, data = config.objective, config.data
    num_pieces = config.model.vocab_size - NUM_SPECIAL

    def objective(batch: dict[str, tf.Tensor]) -> ObjectiveBatch:
        drawn = draw_targets(batch, config)
        token_ids_BT = batch["token_ids"]
        seq_len = token_ids_BT.shape[1]
        draws = stateless_random.row_uniform(
            config.training.seed,
            _STREAM,
            draw_number(batch, config),
            batch["window_id"],
            2 * seq_len,
        )
        fate_BT, piece_BT = tf.split(draws, 2, axis=1)
        any_piece_BT = NUM_SPECIAL + tf.cast(piece_BT * num_pieces, tf.int32)
        is_masked_BT = fate_BT < settings.mask_share
        is_random_BT = fate_BT < settings.mask_share + settings.random_share
        corrupted_BT = tf.where(is_random_BT, any_piece_BT, token_ids_BT)
        corrupted_BT = tf.where(is_masked_BT, MASK_ID, corrupted_BT)
        one_hot_BPT = tf.one_hot(drawn.target_positions, seq_len)
        is_target_BT = tf.reduce_sum(one_hot_BPT * drawn.target_mask[..., None], axis=1) > 0
        inputs = {
            "token_ids": tf.where(is_target_BT, corrupted_BT, token_ids_BT),
            "segment_ids": batch["segment_ids"],
            "content_positions": drawn.target_positions,
            **direction(batch, config),
        }
        if config.model.mem_len:
            is_second_half_T = tf.range(seq_len) >= data.reuse_len
            inputs["order"] = tf.zeros_like(token_ids_BT) + tf.cast(is_second_half_T, tf.int32)
        labels_BP = tf.gather(token_ids_BT, drawn.target_positions, batch_dims=1)
        return ObjectiveBatch(inputs, labels_BP, tf.cast(drawn.target_mask, tf.float32))

    return objective
