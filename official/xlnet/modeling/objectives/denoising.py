"""Denoising: masked language modeling as in BERT, RoBERTa and ERNIE."""

from __future__ import annotations

import tensorflow as tf

from official.xlnet.configs.sections import ObjectiveSections
from official.xlnet.modeling.kernels import stateless_random
from official.xlnet.modeling.objectives.base import (
    Objective,
    ObjectiveBatch,
    direction,
    draw_number,
    draw_targets,
    halves_order,
    register_objective,
)
from official.xlnet.modeling.objectives.permutation_sampling import word_borders
from official.xlnet.tokenization.special_tokens import MASK_ID, NUM_SPECIAL

_CORRUPTION = 1  # Stream of `stateless_random` for corruption; targets use stream 0.


@register_objective("denoising")
def denoising_objective(config: ObjectiveSections) -> Objective:
    """Creates the masked language modeling objective (Devlin et al., BERT, section 3.1).

        loss = -Σ_t log p(x_t | corrupted text),    t over the targets, independently

    Targets are sampled as for permutation language modeling. The variants of BERT are settings:

    | | `data.target_unit` | `data.max_span` | `objective.target_draws` |
    |---|---|---|---|
    | BERT (static masking) | `token` | 0 | 10 |
    | RoBERTa (dynamic masking) | `token` | 0 | 0 |
    | whole word masking | `word` | 1 | |
    | n-gram masking | `word` | n | |
    | ERNIE (phrase masking) | `word`, with `data.phrases` | 1 | |

    A target is replaced by `<mask>` with probability `mask_share` and by a random token with
    probability `random_share`; otherwise it is unchanged. With `data.target_unit` `word`, all
    tokens of a word, or phrase, share one fate: a word is masked as a whole or not at all.

    Without memory, attention is bidirectional over the whole window. With memory, the reused part
    does not attend to the rest of the window, as in permutation language modeling; see
    `halves_order`.

    Args:
      config: sections of the experiment; uses `data`, `objective`, `model` and `seed`.
    """
    settings, data = config.objective, config.data
    num_pieces = config.model.vocab_size - NUM_SPECIAL

    def objective(batch: dict[str, tf.Tensor]) -> ObjectiveBatch:
        drawn = draw_targets(batch, config)
        token_ids_BT = batch["token_ids"]
        seq_len = token_ids_BT.shape[1]
        draws = stateless_random.row_uniform(
            config.seed,
            _CORRUPTION,
            draw_number(batch, config),
            batch["window_id"],
            2 * seq_len,
        )
        fate_BT, piece_BT = tf.split(draws, 2, axis=1)
        if data.target_unit == "word":
            borders_BX = word_borders(
                batch["is_word_start"], batch["can_be_target"], batch["is_reversed"]
            )
            word_BT = tf.cumsum(tf.cast(borders_BX[:, 1:], tf.int32), axis=1, exclusive=True)
            fate_BT = tf.gather(fate_BT, word_BT, batch_dims=1)
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
            **halves_order(token_ids_BT, config),
        }
        labels_BP = tf.gather(token_ids_BT, drawn.target_positions, batch_dims=1)
        return ObjectiveBatch(inputs, labels_BP, tf.cast(drawn.target_mask, tf.float32))

    return objective
