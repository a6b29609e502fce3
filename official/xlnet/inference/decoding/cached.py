"""Decoding with a cache: every new token runs one content row and one query row per layer.

The context has order 0 and every token of it sees the whole context; the i-th token to be
predicted has order i, sees the context and the tokens predicted before it, and is seen by those
after it. Content rows never change once computed, so their keys and values are kept, one slot a
position, and the step that predicts token i + 1 runs two rows:

    content  token i at its position: writes its keys and values, sees order <= i
    query    the position of token i + 1:                          sees order <= i

In the first step there is no token yet: its content row writes the slot of token 1, which nobody
sees before order 1, and by then it has been overwritten.

A causal model has no query row: its content row at a token predicts the next one. Its context has
the orders 1 - n … 0 for n tokens, none of which sees a later one, and the first step takes in the
last of them once more.

Every step attends to all slots of a
cache of fixed size, so all steps cost the same and share one graph.
"""

from __future__ import annotations

import concurrent.futures
import threading
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from official.xlnet.inference.decoding.sampling import choose
from official.xlnet.modeling.kernels.key_value_cache import KeyValueCache, new_cache
from official.xlnet.modeling.layers.relative_position import sinusoids
from official.xlnet.modeling.models.language_model import LanguageModel
from official.xlnet.modeling.networks.xlnet_encoder import XLNetEncoder
from official.xlnet.modeling.ops.visibility import Keys, OrderedRows, TwoStreamMask
from official.xlnet.tokenization.special_tokens import EOD_ID, MASK_ID

# The graphs of a model live as long as it does.
_graphs: weakref.WeakKeyDictionary[LanguageModel, Any] = weakref.WeakKeyDictionary()


def graph_of(model: LanguageModel, function: Callable) -> Any:
    """Returns `function(model, …)` as a `tf.function` of the other arguments; always the same."""
    graphs = _graphs.setdefault(model, {})
    if function not in graphs:
        reference = weakref.ref(model)  # With a strong one, the model would never be freed.
        graphs[function] = tf.function(
            lambda *arguments: function(reference(), *arguments), autograph=False
        )
    return graphs[function]


class Template(NamedTuple):
    """Context and targets, T <= C positions of context and C slots; the last slot is spare.

    Attributes:
      token_ids_BT: int32 [B, T]; ids at positions that hold no context do not matter.
      order_BC: int32 [B, C]: 0 for context, or up to 0 with a causal model; i for the i-th
        target, NEVER_VISIBLE elsewhere.
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


def prefill(
    encoder: XLNetEncoder, token_ids_BT: tf.Tensor, order_BC: tf.Tensor
) -> tuple[KeyValueCache, ...]:
    """Runs the context once, and returns the cache of every layer.

    Args:
      encoder: a built encoder.
      token_ids_BT: int32 [B, T], see `Template`.
      order_BC: int32 [B, C], see `Template`.
    """
    num_tokens, num_slots = token_ids_BT.shape[1], order_BC.shape[1]
    model = encoder.config.model
    between_slots = sinusoids(num_slots, 0, model.d_model, model.clamp_len)
    order_BT = order_BC[:, :num_tokens]
    mask = encoder.attention_mask(token_ids_BT, order=order_BT, is_padding=order_BT > 0)
    hidden_states = encoder.word_embedding(token_ids_BT)
    position_encoding = encoder.position_encoding(hidden_states)
    caches = []

    def run_block(layer, rows):
        block = encoder.blocks[layer]
        weights = block.attention.weights_with(encoder.shared_biases or block.attention.biases)
        caches.append(new_cache(rows, num_slots, between_slots, weights))
        return block(rows, mask, position_encoding, shared_biases=encoder.shared_biases)

    encoder.depth(hidden_states, run_block, len(encoder.blocks))
    return tuple(caches)


def step(
    model: LanguageModel,
    caches: tuple[KeyValueCache, ...],
    order_BC: tf.Tensor,
    index: tf.Tensor,
    token_B: tf.Tensor,
    token_position_B: tf.Tensor,
    target_position_B: tf.Tensor,
) -> tuple[tf.Tensor, tuple[KeyValueCache, ...]]:
    """Takes in token i and predicts token i + 1.

    Args:
      model: a pre-trained model.
      caches: the cache of every layer before.
      order_BC: int32 [B, C], see `Template`.
      index: int32 scalar i, from 0.
      token_B: int32 [B], token i. At i = 0 the last token of the context for a causal model, else
        anything.
      token_position_B: int32 [B], its position. At i = 0 the last token of the context for
        a causal model, else token 1.
      target_position_B: int32 [B], the position of token i + 1.

    Returns:
      logits_BV: float32 [B, V] of token i + 1.
      caches: the caches with token i in them.
    """
    encoder = model.encoder
    is_causal = model.config.objective.kind == "causal"

    def one_row(position_B):
        zeros_B1 = tf.zeros_like(position_B)[:, None]
        return OrderedRows(zeros_B1 + index, zeros_B1, position_B[:, None])

    no_rows = OrderedRows(*(tf.zeros([tf.size(token_B), 0], tf.int32) for _ in range(3)))
    mask = TwoStreamMask(
        content=one_row(token_position_B),
        query=no_rows if is_causal else one_row(target_position_B),
        keys=Keys(order_BC, tf.zeros_like(order_BC), tf.range(order_BC.shape[1])),
    )
    content_BD = encoder.word_embedding(token_B)
    query_BD = tf.broadcast_to(encoder.mask_embedding, tf.shape(content_BD))
    rows_BXD = tf.stack([content_BD] if is_causal else [content_BD, query_BD], axis=1)
    new_caches = []

    def run_block(layer, rows):
        block, cache = encoder.blocks[layer], caches[layer]
        rows, cache = block(rows, mask, shared_biases=encoder.shared_biases, cache=cache)
        new_caches.append(cache)
        return rows

    rows_BXD, _ = encoder.depth(rows_BXD, run_block, len(encoder.blocks))
    logits_BV = model.lm_head(rows_BXD[:, -1:], encoder.word_embedding.embeddings)[:, 0]
    return logits_BV, tuple(new_caches)


def decode(
    model: LanguageModel, template: Template, draws: Draws | None
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
    with tf.device("CPU:0"):
        stop = tf.Variable(False, trainable=False)
    # A graph for each length, of any number of rows.
    specs = tf.nest.map_structure(
        lambda x: x if x is None else tf.TensorSpec([None, *x.shape[1:]][: x.shape.rank], x.dtype),
        (template, draws),
    )
    graph = graph_of(model, _decode).get_concrete_function(*specs, stop)
    if threading.current_thread() is not threading.main_thread():
        return graph(template, draws, stop)
    # Python answers a signal in the main thread, and not before an operation there is over.
    with concurrent.futures.ThreadPoolExecutor(1, "decode") as pool:
        tokens_and_scores = pool.submit(graph, template, draws, stop)
        try:
            return tokens_and_scores.result()
        except KeyboardInterrupt:
            stop.assign(True)  # Ends the loop with the token that it is at.
            raise


def _decode(model, template, draws, stop):
    order_BC = template.order_BC
    num_rows = tf.shape(order_BC)[0]
    is_causal = model.config.objective.kind == "causal"
    first_B = tf.fill([num_rows], MASK_ID)
    if is_causal:
        last_of_context_B = template.target_position_BC[:, 0] - 1
        first_B = tf.gather(template.token_ids_BT, last_of_context_B, batch_dims=1)
    tokens = tf.TensorArray(tf.int32, template.num_targets, element_shape=[None])
    scores = tf.TensorArray(tf.float32, template.num_targets, element_shape=[None])

    def body(index, token_B, has_ended_B, caches, tokens, scores):
        target_B = template.target_position_BC[:, index]
        previous_B = template.target_position_BC[:, tf.maximum(index - 1, 0)]
        if is_causal:  # Targets follow the context and each other.
            previous_B = target_B - 1
        logits_BV, caches = step(model, caches, order_BC, index, token_B, previous_B, target_B)
        is_allowed_BV = tf.gather(template.is_allowed_GV, template.group_BC[:, index])
        allowed_BV = tf.where(is_allowed_BV, logits_BV, -np.inf)
        if draws is None:
            token_B = tf.argmax(allowed_BV, axis=1, output_type=tf.int32)
        else:
            uniform_B = draws.uniform_BC[:, index]
            token_B = choose(allowed_BV, uniform_B, draws.temperature, draws.top_k, draws.top_p)
        loss_B = tf.nn.sparse_softmax_cross_entropy_with_logits(token_B, logits_BV)
        tokens, scores = tokens.write(index, token_B), scores.write(index, -loss_B)
        has_ended_B |= token_B == EOD_ID
        return index + 1, token_B, has_ended_B, caches, tokens, scores

    start = (
        tf.constant(0),
        first_B,
        tf.zeros([num_rows], tf.bool),
        prefill(model.encoder, template.token_ids_BT, order_BC),
        tokens,
        scores,
    )
    *_, tokens, scores = tf.while_loop(
        lambda index, token_B, has_ended_B, *_: (
            (index < template.num_targets) & ~(tf.reduce_all(has_ended_B) | stop)
        ),
        body,
        start,
        parallel_iterations=1,
    )
    return tf.transpose(tokens.stack()), tf.transpose(scores.stack())
