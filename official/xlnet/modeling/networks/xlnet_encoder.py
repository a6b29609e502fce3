"""The XLNet encoder: embeddings, two streams through L blocks, and the memory they leave behind."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
import tf_keras

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.modeling.layers.embedding_lookup import look_up
from official.xlnet.modeling.layers.relative_attention import (
    ALWAYS_VISIBLE,
    NEVER_VISIBLE,
    Keys,
    Pattern,
    RelativeBiases,
    Rows,
)
from official.xlnet.modeling.layers.relative_position import ConsecutiveRows, TargetRows, sinusoids
from official.xlnet.modeling.layers.xlnet_block import XLNetBlock
from official.xlnet.modeling.ops.initializers import normal
from official.xlnet.modeling.ops.rematerialization import recomputed
from official.xlnet.modeling.ops.stateless_dropout import dropout, fold_in


@tf_keras.utils.register_keras_serializable(package="xlnet")
class XLNetEncoder(tf_keras.layers.Layer):
    """Maps tokens to contextual vectors; with `target_positions`, also runs the query stream.

    Content rows (T, from the word embedding) and query rows (P, from one learned vector) share
    every weight, so they travel through the blocks as one stack of T + P rows.

    Args:
      config: the configuration, or its dictionary; reads `model` and `data.reuse_len`.
      reuse_len: how many leading tokens of a window enter the memory; 0 means all of them.
        Default: `config.data.reuse_len`.

    Call arguments: a dictionary (or token_ids alone) of
      token_ids: int32 [B, T].
      segment_ids: int32 [B, T], default 0; any number of segments, only equality matters.
      is_padding: bool [B, T], True where there is no token; default False.
      order: int32 [B, T], the factorization order; position i sees j when order[j] <= order[i].
        Default 0: everything sees everything.
      is_reversed: bool [B], rows that hold reversed text; default: none.
      target_positions: int32 [B, P], where the query stream is wanted; default: nowhere.
      memory: [L, B, M, D], the `memory` of an earlier call; default: none.
      memory_length: int32 [B], how many of the last memory columns belong to the same document;
        default: all that are filled, that is, not zero.
      dropout_seed: int32 [2], makes dropout a pure function of it; default: drawn anew.

    Returns a dictionary:
      content: [B, T, D].
      query: [B, P, D], with `target_positions`; at a target, what can be known about its token
        from its position and the tokens strictly before it in the order.
      memory: [L, B, mem_len, D] for the next call, where mem_len > 0; columns that no token has
        filled yet are zeros at the front.
      word_embedding: [V, D], for a tied head; with `return_word_embedding`.

    Example:
      >>> out = encoder({"token_ids": ids, "order": order, "target_positions": [[3], [1]]})
      >>> out["query"].shape
      TensorShape([2, 1, 768])
    """

    def __init__(
        self, config: XLNetConfig | dict[str, Any], reuse_len: int | None = None, **kwargs
    ):
        kwargs.setdefault("name", "xlnet_encoder")
        super().__init__(**kwargs)
        if isinstance(config, dict):
            config = XLNetConfig.from_dict(config)
        config.check()
        self.config = config
        self.reuse_len = config.data.reuse_len if reuse_len is None else reuse_len
        model = config.model
        self.word_embedding = tf_keras.layers.Embedding(
            model.vocab_size, model.d_model, normal(model.init_std), name="word_embedding"
        )
        self.blocks = [
            XLNetBlock(
                num_heads=model.num_heads,
                d_head=model.d_head,
                d_inner=model.d_inner,
                activation=model.activation,
                dropout=model.dropout,
                dropatt=model.dropatt,
                untie_r=model.untie_r,
                init_std=model.init_std,
                recompute_attention=model.recompute == "attention",
                name=f"layer_{number}",
            )
            for number in range(model.num_layers)
        ]
        self.shared_biases = None
        if not model.untie_r:
            self.shared_biases = RelativeBiases(
                model.num_heads, model.d_head, model.init_std, name="shared_biases"
            )

    def build(self, input_shape=None):
        model = self.config.model
        self.mask_embedding = self.add_weight(
            "mask_embedding",
            [model.d_model],
            initializer=normal(model.init_std),
        )
        with tf.name_scope(self.word_embedding.name):
            self.word_embedding.build(None)
        for block in self.blocks:
            with tf.name_scope(block.name):
                block.build([None, None, model.d_model])
        if self.shared_biases is not None:
            with tf.name_scope(self.shared_biases.name):
                self.shared_biases.build()
        super().build(input_shape)

    def call(
        self,
        inputs: dict[str, tf.Tensor] | tf.Tensor,
        training: bool | None = None,
        return_word_embedding: bool = False,
    ):
        if not isinstance(inputs, dict):
            inputs = {"token_ids": inputs}
        inputs = {name: value for name, value in inputs.items() if value is not None}
        unknown = sorted(set(inputs) - INPUTS)
        if unknown:
            raise ValueError(f"unknown encoder inputs {unknown}; known: {sorted(INPUTS)}")
        model = self.config.model
        token_ids_BT = tf.convert_to_tensor(inputs["token_ids"])
        num_tokens = token_ids_BT.shape[1]
        if num_tokens is None:
            raise ValueError("token_ids must have a static number of tokens T, got [B, None]")
        seed = self._dropout_seed(inputs) if training else None
        memory = inputs.get("memory")
        num_memory = 0 if memory is None else memory.shape[2]
        target_positions = inputs.get("target_positions")
        keys, streams = self._visibility(inputs, token_ids_BT, num_memory, target_positions)

        table_VD = tf.convert_to_tensor(self.word_embedding.embeddings)
        rows_BXD, table_VD = look_up(table_VD, token_ids_BT)
        rows_BXD = tf.cast(rows_BXD, self.compute_dtype)
        if target_positions is not None:
            targets_BP = tf.shape(target_positions)
            mask_embedding = tf.cast(self.mask_embedding, rows_BXD.dtype)
            queries = tf.broadcast_to(
                mask_embedding, [targets_BP[0], target_positions.shape[1], model.d_model]
            )
            rows_BXD = tf.concat([rows_BXD, queries], axis=1)
        rows_BXD = self._dropout(rows_BXD, seed, 0)
        table = sinusoids(num_tokens, num_memory, model.d_model, model.clamp_len)
        arguments = {
            "sinusoids": tuple(
                self._dropout(tf.cast(half, self.compute_dtype), seed, 1 + number)
                for number, half in enumerate(table)
            ),
            "direction_B": _direction(inputs.get("is_reversed")),
            "streams": streams,
            "keys": keys,
            "biases": self.shared_biases,
        }
        layer_inputs = []
        for number, block in enumerate(self.blocks):
            layer_inputs.append(rows_BXD[:, :num_tokens])
            arguments["memory_BMD"] = (
                None if memory is None else tf.cast(memory[number], self.compute_dtype)
            )
            block_seed = None if seed is None else fold_in(seed, 4 + number)
            rows_BXD = self._run(block, rows_BXD, block_seed, arguments, training)
        rows_BXD = self._dropout(rows_BXD, seed, 3)

        outputs = {"content": rows_BXD[:, :num_tokens]}
        if target_positions is not None:
            outputs["query"] = rows_BXD[:, num_tokens:]
        if model.mem_len:
            outputs["memory"] = self._next_memory(memory, layer_inputs)
        if return_word_embedding:
            outputs["word_embedding"] = table_VD
        return outputs

    def _run(self, block, rows_BXD, seed, arguments, training):
        """One block, whose activations are kept or, with `recompute: block`, computed again."""
        if not training or self.config.model.recompute != "block":
            return block(rows_BXD, seed=seed, **arguments)
        arguments = dict(arguments)
        return recomputed(lambda rows: block(rows, seed=seed, **arguments))(rows_BXD)

    def _visibility(self, inputs, token_ids_BT, num_memory, target_positions):
        """Who may see whom: orders, segments and positions of keys and of both streams' rows."""
        shape_BT = tf.shape(token_ids_BT)
        num_tokens = token_ids_BT.shape[1]
        zeros_BT = tf.zeros(shape_BT, tf.int32)
        order_BT = tf.cast(inputs.get("order", zeros_BT), tf.int32)
        segment_BT = tf.cast(inputs.get("segment_ids", zeros_BT), tf.int32)
        position_T = tf.range(num_tokens)
        key_order = order_BT
        if "is_padding" in inputs:
            is_padding_BT = tf.cast(inputs["is_padding"], tf.bool)
            key_order = tf.where(is_padding_BT, NEVER_VISIBLE, order_BT)
        key_segment = segment_BT
        if num_memory:
            if "memory_length" in inputs:
                age_M = num_memory - tf.range(num_memory)
                is_valid_BM = age_M <= tf.cast(inputs["memory_length"], tf.int32)[:, None]
            else:
                is_valid_BM = tf.reduce_any(inputs["memory"][0] != 0, axis=-1)
            memory_order = tf.where(is_valid_BM, ALWAYS_VISIBLE, NEVER_VISIBLE)
            key_order = tf.concat([memory_order, key_order], axis=1)
            key_segment = tf.pad(segment_BT, [[0, 0], [num_memory, 0]])
        num_keys = num_memory + num_tokens
        causal = self.config.model.attention_type == "uni"
        keys = Keys(key_order, key_segment, tf.range(-num_memory, num_tokens))
        position_BT = tf.broadcast_to(position_T, shape_BT)
        content = Rows(order_BT, segment_BT, position_BT)
        content_stream = (content, Pattern(ConsecutiveRows(num_tokens, num_keys), causal))
        if target_positions is None:
            return keys, (content_stream,)
        target_positions = tf.cast(target_positions, tf.int32)
        query = Rows(
            tf.gather(order_BT, target_positions, batch_dims=1) - 1,
            tf.gather(segment_BT, target_positions, batch_dims=1),
            target_positions,
        )
        query_stream = (query, Pattern(TargetRows(num_tokens, num_keys), causal))
        return keys, (content_stream, query_stream)

    def _next_memory(self, memory, layer_inputs):
        """stop_gradient(concat(memory_l, h_l[:reuse_len]))[-mem_len:] of every layer l."""
        length = self.config.model.mem_len
        num_tokens = layer_inputs[0].shape[1]
        reused = min(self.reuse_len or num_tokens, num_tokens)
        next_memory = []
        for number, hidden_BTD in enumerate(layer_inputs):
            new_BMD = hidden_BTD[:, :reused]
            if memory is not None:
                new_BMD = tf.concat([tf.cast(memory[number], new_BMD.dtype), new_BMD], axis=1)
            new_BMD = new_BMD[:, -length:]
            next_memory.append(tf.pad(new_BMD, [[0, 0], [length - new_BMD.shape[1], 0], [0, 0]]))
        return tf.stop_gradient(tf.stack(next_memory))

    def _dropout_seed(self, inputs):
        if "dropout_seed" in inputs:
            return tf.cast(inputs["dropout_seed"], tf.int32)
        return tf.random.uniform([2], tf.int32.min, tf.int32.max, tf.int32)

    def _dropout(self, x, seed, number):
        if seed is None:
            return x
        return dropout(x, self.config.model.dropout, fold_in(seed, number))

    def get_config(self):
        return {
            **super().get_config(),
            "config": self.config.as_dict(),
            "reuse_len": self.reuse_len,
        }


INPUTS = {
    "token_ids",
    "segment_ids",
    "is_padding",
    "order",
    "is_reversed",
    "target_positions",
    "memory",
    "memory_length",
    "dropout_seed",
}


def _direction(is_reversed_B):
    """1 for rows read left to right, -1 for reversed ones."""
    return None if is_reversed_B is None else 1 - 2 * tf.cast(is_reversed_B, tf.int32)
