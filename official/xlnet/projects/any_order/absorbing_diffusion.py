"""Absorbing (masked) diffusion: all rates of masking, weighted so that the loss is a bound."""

from __future__ import annotations

import tensorflow as tf

from official.xlnet.configs.sections import ObjectiveSections
from official.xlnet.modeling.kernels import stateless_random
from official.xlnet.modeling.objectives.base import (
    Objective,
    ObjectiveBatch,
    direction,
    draw_number,
    halves_order,
    register_objective,
)
from official.xlnet.tokenization.special_tokens import MASK_ID

_RATE, _ORDER = 2, 3  # Streams of `stateless_random`.
_GOLDEN = 2654435769  # 2**32 / golden ratio: multiples modulo 2**32 are evenly spread.


@register_objective("absorbing_diffusion")
def absorbing_diffusion_objective(config: ObjectiveSections) -> Objective:
    """Creates the absorbing diffusion objective (Austin et al. 2021; Sahoo et al. 2024, MDLM).

        loss = -E_n [ (N / n) Σ_t log p(x_t | text in which n of N tokens are masked) ] / N,
        t over the n masked tokens, n uniform in 1..N, the masked ones uniform given n

    This is the bound on -log p(x) / N of a diffusion with a linear schedule of masking rates n / N,
    in the discrete form of Hoogeboom et al. (2022), equation 4: it equals the loss of the same
    network as an any-order autoregressive model, which predicts one token at a time, in the mean
    over all orders (also Ou et al. 2024). Tokens are predicted from the content stream. Special
    tokens are neither masked nor predicted.

    Rates are evenly spread over the windows of an epoch: the rate of a window is a multiple of the
    golden ratio modulo 1, shifted at random in each epoch. `data.num_predict`, `target_ratio`,
    `target_unit` and `max_span` are not read, as any number of single tokens may be masked. With
    memory, the reused part does not attend to the rest of the window; see `denoising_objective`.

    Args:
      config: sections of the experiment; uses `data`, `objective`, `model` and `seed`.
    """

    def objective(batch: dict[str, tf.Tensor]) -> ObjectiveBatch:
        token_ids_BT, can_mask_BT = batch["token_ids"], batch["can_be_target"]
        batch_size, seq_len = tf.shape(token_ids_BT)[0], token_ids_BT.shape[1]
        draw = draw_number(batch, config)
        window_id = batch["window_id"]
        shift_B1 = stateless_random.row_bits(
            config.seed, _RATE, draw, tf.zeros_like(window_id), num=1
        )
        low_B = tf.cast(tf.bitwise.bitwise_and(window_id, 0xFFFFFFFF), tf.uint32)
        turns_B1 = shift_B1 + low_B[:, None] * tf.constant(_GOLDEN, tf.uint32)  # Modulo 2**32.
        rate_B1 = tf.cast(tf.bitwise.right_shift(turns_B1, tf.constant(16, tf.uint32)), tf.int32)
        num_tokens_B1 = tf.reduce_sum(tf.cast(can_mask_BT, tf.int32), axis=1, keepdims=True)
        num_masked_B1 = 1 + rate_B1 * num_tokens_B1 // 2**16
        place_BT = stateless_random.row_uniform(config.seed, _ORDER, draw, window_id, seq_len)
        place_BT = tf.where(can_mask_BT, place_BT, 2.0)
        rank_BT = tf.argsort(tf.argsort(place_BT, axis=1, stable=True), axis=1)
        is_masked_BT = (rank_BT < num_masked_B1) & can_mask_BT
        weight_B1 = tf.cast(num_tokens_B1 / num_masked_B1, tf.float32)
        inputs = {
            "token_ids": tf.where(is_masked_BT, MASK_ID, token_ids_BT),
            "segment_ids": batch["segment_ids"],
            "content_positions": tf.tile(tf.range(seq_len)[None], [batch_size, 1]),
            **direction(batch, config),
            **halves_order(token_ids_BT, config),
        }
        return ObjectiveBatch(inputs, token_ids_BT, tf.where(is_masked_BT, weight_B1, 0.0))

    return objective
