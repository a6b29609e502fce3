"""Decoding with a cache: every new token runs one content row and one query row per layer.

The context has order 0 and every token of it sees the whole context; the i-th token to be
predicted has order i, sees the context and the tokens predicted before it, and is seen by those
after it. Content rows never change once computed, so their keys and values are kept, one slot a
position, and the step that predicts token i + 1 runs two rows:

    content  token i at its position: writes its keys and values, sees order <= i
    query    the position of token i + 1:                          sees order <= i

In the first step there is no token yet: its content row writes the slot of token 1, which nobody
sees before order 1, and by then it has been overwritten. Every step attends to all slots of a
cache of fixed size, so all steps cost the same and share one graph.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from official.xlnet.inference.sampling import choose
from official.xlnet.modeling.layers.relative_attention import Keys, Pattern, Rows, attend
from official.xlnet.modeling.layers.relative_position import ConsecutiveRows, TargetRows, sinusoids
from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
from official.xlnet.modeling.networks.xlnet_encoder import XLNetEncoder
from official.xlnet.modeling.ops.head_projection import from_heads, to_heads
from official.xlnet.tokenization.special_tokens import EOD_ID, MASK_ID


class Cache(NamedTuple):
    """What is kept between two steps: C slots, slot c for position c, in each of L layers.

    Attributes:
      keys: L tensors [B, N, C, H].
      values: L tensors [B, N, C, H].
    """

    keys: tuple[tf.Tensor, ...]
    values: tuple[tf.Tensor, ...]


class Template(NamedTuple):
    """Context and targets, T <= C positions of context and C slots; the last slot is spare.

    Attributes:
      token_ids_BT: int32 [B, T]; ids at positions that hold no context do not matter.
      order_BC: int32 [B, C]: 0 for context, i for the i-th target, NEVER_VISIBLE elsewhere.
      target_position_BC: int32 [B, C], the positions of the targets, in order; then C - 1.
      num_targets: int32 scalar, the largest number of targets of a row.
      group_BC: int32 [B, C], the group of each target.
      is_allowed_GV: bool [G, V], the tokens that targets of each group may become.
    """

    token_ids_BT: tf.Tensor
    order_BC: tf.Tensor
    target_position_BC: tf.Tensor
    num_targets: tf.Tensor
    group_BC: tf.Tensor
    is_allowed_GV: tf.Tensor


class Draws(NamedTuple):
    """How tokens are drawn; see `sampling.choose`.

    Attributes:
      uniform_BC: float32 [B, C], in [0, 1), the randomness of each target.
      temperature: float32 scalar.
      top_k: int32 scalar.
      top_p: float32 scalar.
    """

    uniform_BC: tf.Tensor
    temperature: tf.Tensor
    top_k: tf.Tensor
    top_p: tf.Tensor


def prefill(encoder: XLNetEncoder, token_ids_BT: tf.Tensor, order_BC: tf.Tensor) -> Cache:
    """Runs the context once, and returns its keys and values.

    Args:
      encoder: a built encoder.
      token_ids_BT: int32 [B, T], see `Template`.
      order_BC: int32 [B, C], see `Template`.
    """
    model = encoder.config.model
    num_tokens, num_slots = token_ids_BT.shape[1], order_BC.shape[1]
    zeros_BT = tf.zeros_like(token_ids_BT)
    position_T = tf.range(num_tokens)
    arguments = {
        "memory_BMD": None,
        "sinusoids": sinusoids(num_tokens, 0, model.d_model, model.clamp_len),
        "direction_B": None,
        "streams": (
            (
                Rows(zeros_BT, zeros_BT, zeros_BT + position_T),
                Pattern(ConsecutiveRows(num_tokens, num_tokens), model.attention_type == "uni"),
            ),
        ),
        "keys": Keys(order_BC[:, :num_tokens], zeros_BT, position_T),
        "biases": encoder.shared_biases,
    }
    rows_BTD = encoder.word_embedding(token_ids_BT)
    free = [[0, 0], [0, 0], [0, num_slots - num_tokens], [0, 0]]
    keys, values = [], []
    for block in encoder.blocks:
        keys.append(tf.pad(to_heads(rows_BTD, block.attention.key_kernel), free))
        values.append(tf.pad(to_heads(rows_BTD, block.attention.value_kernel), free))
        rows_BTD = block(rows_BTD, **arguments)
    return Cache(tuple(keys), tuple(values))


def project_positions(encoder: XLNetEncoder, num_slots: int) -> list[tf.Tensor]:
    """Every layer's projection of all distances between C slots, L tensors [1, N, 2C - 1, H]."""
    model = encoder.config.model
    table_RD = np.concatenate(sinusoids(num_slots, 0, model.d_model, model.clamp_len), axis=1)
    return [
        to_heads(tf.constant(table_RD[None]), block.attention.position_kernel)
        for block in encoder.blocks
    ]


def step(
    model: XLNetPretrainer,
    cache: Cache,
    positions: list[tf.Tensor],
    order_BC: tf.Tensor,
    number: tf.Tensor,
    token_B: tf.Tensor,
    token_position_B: tf.Tensor,
    target_position_B: tf.Tensor,
) -> tuple[tf.Tensor, Cache]:
    """Takes in token i and predicts token i + 1.

    Args:
      model: a pre-trained model.
      cache: the cache before.
      positions: see `project_positions`.
      order_BC: int32 [B, C], see `Template`.
      number: int32 scalar i, from 0.
      token_B: int32 [B], token i; anything at i = 0.
      token_position_B: int32 [B], its position; that of token 1 at i = 0.
      target_position_B: int32 [B], the position of token i + 1.

    Returns:
      logits_BV: float32 [B, V] of token i + 1.
      cache: the cache with token i in it.
    """
    encoder = model.encoder
    num_slots = order_BC.shape[1]
    position_BQ = tf.stack([token_position_B, target_position_B], axis=1)
    zeros_BQ = tf.zeros_like(position_BQ)
    rows = Rows(zeros_BQ + number, zeros_BQ, position_BQ)
    keys = Keys(order_BC, tf.zeros_like(order_BC), tf.range(num_slots))
    causal = encoder.config.model.attention_type == "uni"
    pattern = Pattern(TargetRows(num_slots, num_slots), causal)

    content_BD = encoder.word_embedding(token_B)
    query_BD = tf.broadcast_to(encoder.mask_embedding, tf.shape(content_BD))
    rows_BQD = tf.stack([content_BD, query_BD], axis=1)
    cached_keys, cached_values = [], []
    for block, key_BNCH, value_BNCH, position_1NRH in zip(
        encoder.blocks, cache.keys, cache.values, positions, strict=True
    ):
        layer = block.attention
        biases = encoder.shared_biases or layer.biases
        key_BNCH = _write(key_BNCH, token_position_B, rows_BQD, layer.key_kernel)
        value_BNCH = _write(value_BNCH, token_position_B, rows_BQD, layer.value_kernel)
        query_BNQH = to_heads(rows_BQD, layer.query_kernel)
        scale = layer.d_head**-0.5
        by_content = (query_BNQH + biases.content[:, None]) * scale
        by_position = (query_BNQH + biases.position[:, None]) * scale
        attended_BNQH = attend(
            tf.matmul(by_content, key_BNCH, transpose_b=True),
            pattern.distances.scores(by_position, position_1NRH),
            tf.zeros_like(by_content[..., 0]),  # All of one segment.
            value_BNCH,
            rows,
            keys,
            pattern,
            rate=0.0,
            seed=None,
        )
        attended_BQD = from_heads(attended_BNQH, layer.output_kernel)
        rows_BQD = block.attention_norm(rows_BQD, attended_BQD)
        rows_BQD = block.feed_forward_norm(rows_BQD, block.feed_forward(rows_BQD))
        cached_keys.append(key_BNCH)
        cached_values.append(value_BNCH)
    embedding_VD = encoder.word_embedding.embeddings
    logits_BV = model.lm_head(rows_BQD[:, 1:], embedding_VD)[:, 0]
    return logits_BV, Cache(tuple(cached_keys), tuple(cached_values))


@tf.function(autograph=False)
def decode(
    model: XLNetPretrainer, template: Template, draws: Draws | None
) -> tuple[tf.Tensor, tf.Tensor]:
    """Predicts the targets of every row, one after the other; ends early where all rows have.

    Args:
      model: a pre-trained model.
      template: context and targets.
      draws: how to draw tokens; None takes the most probable ones.

    Returns:
      tokens: int32 [B, num_targets]. What follows an `<eod>` has no meaning.
      log_likelihoods: float32 [B, num_targets], of those tokens by the model itself, before
        any restriction.
    """
    order_BC = template.order_BC
    encoder = model.encoder
    num_rows = order_BC.shape[0]
    positions = project_positions(encoder, order_BC.shape[1])
    tokens = tf.TensorArray(tf.int32, template.num_targets, element_shape=[num_rows])
    scores = tf.TensorArray(tf.float32, template.num_targets, element_shape=[num_rows])

    def goes_on(number, token_B, has_ended_B, *_):
        return (number < template.num_targets) & ~tf.reduce_all(has_ended_B)

    def body(number, token_B, has_ended_B, cache, tokens, scores):
        target_B = template.target_position_BC[:, number]
        previous_B = template.target_position_BC[:, tf.maximum(number - 1, 0)]
        logits_BV, cache = step(
            model, cache, positions, order_BC, number, token_B, previous_B, target_B
        )
        is_allowed_BV = tf.gather(template.is_allowed_GV, template.group_BC[:, number])
        allowed_BV = tf.where(is_allowed_BV, logits_BV, -np.inf)
        if draws is None:
            token_B = tf.argmax(allowed_BV, axis=1, output_type=tf.int32)
        else:
            uniform_B = draws.uniform_BC[:, number]
            token_B = choose(allowed_BV, uniform_B, draws.temperature, draws.top_k, draws.top_p)
        loss_B = tf.nn.sparse_softmax_cross_entropy_with_logits(token_B, logits_BV)
        tokens, scores = tokens.write(number, token_B), scores.write(number, -loss_B)
        return number + 1, token_B, has_ended_B | (token_B == EOD_ID), cache, tokens, scores

    start = (
        tf.constant(0),
        tf.fill([num_rows], MASK_ID),
        tf.zeros([num_rows], tf.bool),
        prefill(encoder, template.token_ids_BT, order_BC),
        tokens,
        scores,
    )
    *_, tokens, scores = tf.while_loop(goes_on, body, start, parallel_iterations=1)
    return tf.transpose(tokens.stack()), tf.transpose(scores.stack())


def _write(
    slots_BNCH: tf.Tensor, position_B: tf.Tensor, rows_BQD: tf.Tensor, kernel_DNH: tf.Tensor
) -> tf.Tensor:
    """Projects the content rows, the first ones, into the slots of their positions."""
    new_BNH = to_heads(rows_BQD[:, :1], kernel_DNH)[:, :, 0]
    num_rows, num_heads, _ = new_BNH.shape
    shape = [num_rows or tf.shape(new_BNH)[0], num_heads]
    row_BN = tf.broadcast_to(tf.range(shape[0])[:, None], shape)
    head_BN = tf.broadcast_to(tf.range(num_heads), shape)
    slot_BN = tf.broadcast_to(position_B[:, None], shape)
    index_BN3 = tf.stack([row_BN, head_BN, slot_BN], axis=2)
    return tf.tensor_scatter_nd_update(slots_BNCH, index_BN3, new_BNH)
