"""The XLNet encoder: embeddings, two streams through L blocks, and the memory they leave behind."""

from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from official.xlnet.configs.registry import DEPTHS
from official.xlnet.modeling.kernels.rematerialization import recomputed
from official.xlnet.modeling.kernels.stateless_dropout import dropout, dropout_seed_of_call, fold_in
from official.xlnet.modeling.layers.lm_head import look_up
from official.xlnet.modeling.layers.relative_attention import RelativeBiases
from official.xlnet.modeling.layers.relative_position import RelativePositionEncoding
from official.xlnet.modeling.layers.two_stream_mask import TwoStreamAttentionMask
from official.xlnet.modeling.layers.xlnet_block import XLNetBlock
from official.xlnet.modeling.networks.encoder import Encoder, Experiment, register_network
from official.xlnet.modeling.networks.encoder_inputs import checked_inputs
from official.xlnet.modeling.ops.initializers import build_layers, normal
from official.xlnet.modeling.ops.keras import IS_KERAS_3, Embedding, keras
from official.xlnet.modeling.ops.shapes import sizes
from official.xlnet.modeling.ops.visibility import TwoStreamMask, last_rows

# The dropout seed of each part is fold_in(seed of the call, one of these); block n has
# FIRST_BLOCK + n.
EMBEDDING, SINE, COSINE, OUTPUT, FIRST_BLOCK = range(5)


@register_network("xlnet")
@keras.utils.register_keras_serializable(package="xlnet")
class XLNetEncoder(Encoder):
    """XLNet encoder: maps tokens to contextual vectors, in one stream or two.

    Content rows (T, from the word embedding) and query rows (P, from one learned vector) share
    every weight, so they travel through the blocks as one stack of T + P rows.

    Args:
      config: the configuration, or its dictionary; reads `model` and `data.reuse_len`.
      reuse_len: how many leading tokens of a window enter the memory; 0 means all of them.
        Default: `config.data.reuse_len`.
      mem_len: number of columns of the memory, M; 0 for no memory. Default:
        `config.model.mem_len`.

    Call arguments:
      inputs: token_ids alone, or a dictionary of
        token_ids: int32 [B, T]. B and T may be unknown until the model runs.
        segment_ids: int32 [B, T], any number of segments; only equality matters. Default: `<sep>`
          ends a segment, and `<cls>` has one of its own, as in the inputs of a tokenizer. Without
          effect where `model.segments` is false.
        is_padding: bool [B, T], True where there is no token. Default: where `<pad>` is. With
          `order`, `perm_mask` or `target_positions`, one segment without padding.
        order: int32 [B, T], the factorization order; position i attends to j if order[j] <=
          order[i]. Default 0: every position attends to every position.
        perm_mask: bool [B, T, T] in the place of `order`, True where i may not attend to
          j. Content always attends to itself, a target never does.
        is_reversed: bool [B], rows that hold reversed text. Default: none.
        target_positions: int32 [B, P], where the query stream is wanted, or [1, P] if that is the
          same for all rows. Default: nowhere.
        memory: [L, B, M, D], the `memory` of an earlier call. Default: none.
        memory_length: int32 [B], how many of the last memory columns belong to the same document.
          Default: all that are filled, that is, not zero.
        dropout_seed: int32 [2], makes dropout a pure function of it. Default: a random seed.
      training: whether dropout is applied.
      num_content: how many rows of the content stream are wanted, the last ones; the last layer
        computes no others. Needs a static T. Default: all of them.
      return_word_embedding: whether to return `word_embedding`.
      return_hidden_states: whether to return `hidden_states`.
      return_attention_scores: whether to return `attention_scores`.
      return_num_steps: whether to return `num_steps`.

    Returns:
      A dictionary of
        content: [B, T, D], or [B, num_content, D]. Its Keras mask is `~is_padding`.
        query: [B, P, D], with `target_positions`; at a target, what can be known about its token
          from its position and the tokens strictly before it in the order.
        memory: [L, B, mem_len, D] for the next call, where mem_len > 0; columns that no token has
          filled yet are zeros at the front.
        word_embedding: [V, D], for a tied head.
        hidden_states: [L + 1, B, T, D], the content stream before each block and at the end.
        attention_scores: float32 [L, B, N, T, K], attention probabilities of the content stream,
          before dropout.
        num_steps: int32 [B, T], number of blocks that each token of the content stream went
          through; L unless `model.depth` is adaptive.

    Raises:
      ValueError: `token_ids` are not integers [B, T] with T > 0, an input is unknown, or both
        `order` and `perm_mask` are given.

    Example:
      >>> encoder = XLNetEncoder(XLNetConfig.from_dict({"model": {"vocab_size": 100}}))
      >>> token_ids = tf.constant([[17, 42, 99], [11, 55, 33]])
      >>> order = tf.constant([[0, 2, 1], [1, 0, 0]])
      >>> out = encoder({"token_ids": token_ids, "order": order, "target_positions": [[1], [0]]})
      >>> out["content"].shape, out["query"].shape
      (TensorShape([2, 3, 768]), TensorShape([2, 1, 768]))
    """

    def __init__(
        self,
        config: Experiment,
        reuse_len: int | None = None,
        mem_len: int | None = None,
        **kwargs,
    ):
        super().__init__(config, reuse_len, mem_len, **kwargs)
        model, policy = self.model, self.dtype_policy
        self.word_embedding = Embedding(
            model.num_embeddings,
            model.d_model,
            normal(model.init_std),
            dtype=policy,
            name="word_embedding",
        )
        self.attention_mask = TwoStreamAttentionMask(dtype=policy, name="attention_mask")
        self.position_encoding = RelativePositionEncoding(
            model.clamp_len, dtype=policy, name="position_encoding"
        )
        new_block = functools.partial(
            XLNetBlock,
            model.num_heads,
            model.d_head,
            model.d_inner,
            activation=model.activation,
            dropout=model.dropout,
            dropatt=model.dropatt,
            untie_r=model.untie_r,
            attention_type=model.attention_type,
            init_std=model.init_std,
            recompute_attention=model.recompute == "attention",
            activation_dropout=model.activation_dropout,
            attention_init=model.attention_init,
            dtype=policy,
        )
        self.depth = DEPTHS[model.depth].from_model(model, name="depth")
        # One block for each layer; the same one again and again where they share it.
        self.blocks = self.depth.blocks(new_block, model.num_layers)
        self.shared_biases = None
        if not model.untie_r:
            self.shared_biases = RelativeBiases(
                model.num_heads,
                model.d_head,
                model.init_std,
                model.attention_init,
                dtype=policy,
                name="shared_biases",
            )

    @property
    def only_pretrained(self) -> list[tf.Variable]:
        """Variables that only pre-training reads: the query stream's first vector."""
        return [self.mask_embedding]

    def build(self, input_shape=None):
        self.mask_embedding = self.add_weight(
            name="mask_embedding",
            shape=[self.model.d_model],
            initializer=normal(self.model.init_std),
        )
        warnings.filterwarnings("ignore", _EXPECTED.pattern)  # Of Keras 3.
        build_layers(self.word_embedding, input_shape=[None, None])
        layers = dict.fromkeys([*self.blocks, self.depth])
        build_layers(*layers, input_shape=[None, None, self.model.d_model])
        if self.shared_biases is not None:
            build_layers(self.shared_biases)
        super().build(input_shape)

    def call(
        self,
        inputs: dict[str, tf.Tensor] | tf.Tensor,
        training: bool | None = None,
        num_content: int | None = None,
        return_word_embedding: bool = False,
        return_hidden_states: bool = False,
        return_attention_scores: bool = False,
        return_num_steps: bool = False,
    ) -> dict[str, tf.Tensor]:
        inputs = self._checked(inputs)
        seed = dropout_seed_of_call(training, inputs.get("dropout_seed"))
        num_tokens = sizes(inputs["token_ids"])[1]
        rows_BXD, mask, table, table_VD = self._start(inputs, seed)
        masks = [mask] * len(self.blocks)
        if num_content is not None:  # The last layer has only the last rows, which are wanted.
            masks[-1:] = [mask._replace(content=last_rows(mask.content, num_content))]

        layer_inputs, scores, rest = [], [], (inputs, seed, training, return_attention_scores)

        def step(layer, rows_BXD):
            layer_inputs.append(rows_BXD[:, :num_tokens])
            rows_BXD, score_BNTK = self._run_block(layer, rows_BXD, masks[layer], table, *rest)
            scores.append(score_BNTK)
            return rows_BXD

        rows_BXD, num_steps_BX = self.depth(
            rows_BXD,
            step=step,
            num_layers=len(self.blocks),
            is_padding=inputs.get("is_padding"),
            training=training,
        )
        rows_BXD = self._finish(rows_BXD, seed)

        if num_content is None:
            num_content = num_tokens
        elif not self.blocks:
            rows_BXD = rows_BXD[:, num_tokens - num_content :]
        outputs = {"content": rows_BXD[:, :num_content]}
        self.mark_padding(outputs, inputs["is_padding"])
        if inputs.get("target_positions") is not None:
            outputs["query"] = rows_BXD[:, num_content:]
        if self.mem_len:
            outputs["memory"] = self._next_memory(inputs.get("memory"), layer_inputs)
        if return_word_embedding:
            outputs["word_embedding"] = table_VD
        if return_hidden_states:
            outputs["hidden_states"] = tf.stack([*layer_inputs, outputs["content"]])
        if return_attention_scores:
            outputs["attention_scores"] = tf.stack(scores)
        if return_num_steps:
            outputs["num_steps"] = num_steps_BX[:, :num_tokens]
        return outputs

    def _checked(self, inputs: Any) -> dict[str, tf.Tensor]:
        """The inputs of a call by name, checked, with defaults."""
        return checked_inputs(inputs, INPUTS, self.model.vocab_size)

    def _start(self, inputs: dict[str, tf.Tensor], seed: tf.Tensor | None) -> tuple:
        """What the first block takes.

        Args:
          inputs: the inputs of a call, checked.
          seed: int32 [2], seed of the call's dropout; None for no dropout.

        Returns:
          Rows of both streams [B, T + P, D], their `TwoStreamMask`, the position encoding, and the
          embedding [V, D].
        """
        token_ids_BT = tf.cast(inputs["token_ids"], tf.int32)
        memory, num_tokens = inputs.get("memory"), sizes(token_ids_BT)[1]
        rows_BXD, table_VD = self._embed(token_ids_BT, inputs.get("target_positions"), seed)
        first_memory = None if memory is None else memory[0]
        of_mask = {name: inputs.get(name) for name in _MASK_INPUTS}
        if not self.model.segments:  # All of one segment: its term is the same for every key.
            of_mask["segment_ids"] = None
        mask = self.attention_mask(token_ids_BT, memory=first_memory, **of_mask)
        table = self.position_encoding(rows_BXD[:, :num_tokens], memory=first_memory)
        if seed is not None:
            table = table.with_dropout(
                self.model.dropout, fold_in(seed, SINE), fold_in(seed, COSINE)
            )
        return rows_BXD, mask, table, table_VD

    def _embed(self, token_ids_BT, target_positions, seed):
        """Rows of both streams [B, T + P, D] before the first block, and the embedding [V, D]."""
        rows_BXD, table_VD = self._look_up(token_ids_BT)
        rows_BXD = tf.cast(rows_BXD, self.compute_dtype)
        if target_positions is not None:
            batch_size, num_targets = sizes(token_ids_BT)[0], sizes(target_positions)[1]
            mask_embedding = tf.cast(self.mask_embedding, rows_BXD.dtype)
            shape = [batch_size, num_targets, self.model.d_model]
            rows_BXD = tf.concat([rows_BXD, tf.broadcast_to(mask_embedding, shape)], axis=1)
        return dropout(rows_BXD, self.model.dropout, fold_in(seed, EMBEDDING)), table_VD

    def _look_up(self, token_ids_BT: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor | None]:
        """Rows of the word embedding [B, T, D], and the embedding [V, D] for a tied head."""
        return look_up(tf.convert_to_tensor(self.word_embedding.embeddings), token_ids_BT)

    def _run_block(
        self,
        layer: int,
        rows_BXD: tf.Tensor,
        mask: TwoStreamMask,
        table: tuple,
        inputs: dict[str, tf.Tensor],
        seed: tf.Tensor | None,
        training: bool | None,
        return_attention_scores: bool = False,
    ) -> tuple[tf.Tensor, tf.Tensor | None]:
        """Rows after the block of a layer, and its attention probabilities if they are wanted."""
        memory = inputs.get("memory")
        run = functools.partial(
            self.blocks[layer].__call__,
            attention_mask=mask,
            position_encoding=table,
            memory=None if memory is None else tf.cast(memory[layer], self.compute_dtype),
            is_reversed=inputs.get("is_reversed"),
            shared_biases=self.shared_biases,
            training=training,
        )
        seed = fold_in(seed, FIRST_BLOCK + layer)
        if return_attention_scores:
            return run(rows_BXD, dropout_seed=seed, return_attention_scores=True)
        if training and self.model.recompute == "block":
            run_again = recomputed(lambda rows_BXD, seed: run(rows_BXD, dropout_seed=seed))
            return run_again(rows_BXD, seed), None
        return run(rows_BXD, dropout_seed=seed), None

    def _finish(self, rows_BXD: tf.Tensor, seed: tf.Tensor | None) -> tf.Tensor:
        """Rows after the last block, with the dropout of the output."""
        return dropout(rows_BXD, self.model.dropout, fold_in(seed, OUTPUT))

    def _next_memory(self, memory: tf.Tensor | None, layer_inputs: list[tf.Tensor]) -> tf.Tensor:
        """stop_gradient(concat(memory_l, h_l[:reuse_len]))[-mem_len:] of every layer l."""
        length = self.mem_len
        next_memory = []
        for layer, hidden_BTD in enumerate(layer_inputs):
            new_BMD = hidden_BTD[:, : self.reuse_len or None]
            if memory is not None:
                new_BMD = tf.concat([tf.cast(memory[layer], new_BMD.dtype), new_BMD], axis=1)
            new_BMD = new_BMD[:, -length:]
            missing = length - sizes(new_BMD)[1]
            new_BMD = tf.pad(new_BMD, [[0, 0], [missing, 0], [0, 0]])
            next_memory.append(tf.ensure_shape(new_BMD, [None, length, None]))
        return tf.stop_gradient(tf.stack(next_memory))

    def functional(self, inputs: Sequence[str] = ("token_ids",)) -> keras.Model:
        """Returns a functional Keras model of the encoder, which can be cut at each block.

        The model shares the weights of the encoder. Its layers are `embeddings`, `layer_0`,
        `layer_1`, …, `content` and, where there is a memory, `next_memory`. It returns `content`
        and `memory`, as a call of the encoder does, which alone has query streams and orders.

        Args:
          inputs: names of the inputs of a call: `token_ids`, and any of `segment_ids`,
            `is_padding`, `is_reversed`, `memory` and `memory_length`. A single one is passed by
            itself, several as a dictionary.

        Raises:
          ConfigError: an input is unknown, or `model.depth` does not run each block once.

        Example:
          >>> config = XLNetConfig.from_dict({"model": {"vocab_size": 100, "num_layers": 2}})
          >>> model = XLNetEncoder(config).functional()
          >>> lower_half = keras.Model(model.inputs, model.get_layer("layer_0").output)
          >>> lower_half(tf.constant([[17, 42, 99], [11, 55, 33]])).shape
          TensorShape([2, 3, 768])
        """
        from official.xlnet.modeling.networks.functional_view import functional_view

        return functional_view(self, inputs)

    if IS_KERAS_3:  # Which would take the shapes of Keras 2 for all outputs.
        compute_output_spec = keras.Operation.compute_output_spec

    def compute_output_shape(self, input_shape):  # Keras would try floating point ids.
        """Shapes of the outputs for token ids [B, T]; of another shape, B and T are unknown."""
        sizes_of_ids = tf.TensorShape(input_shape)
        batch_size, num_tokens = sizes_of_ids if sizes_of_ids.rank == 2 else (None, None)
        width = self.model.d_model
        shapes = {"content": tf.TensorShape([batch_size, num_tokens, width])}
        if self.mem_len:
            memory = [self.model.num_layers, batch_size, self.mem_len, width]
            shapes["memory"] = tf.TensorShape(memory)
        return shapes


# Warnings of TensorFlow about correct models: about a Keras model around an encoder, about exports
# that are written under a temporary name, and about one graph for each model that predicts or
# scores.
_MASK_EMBEDDING = r"'[^',]*mask_embedding(:0)?'"
_EXPECTED = re.compile(
    rf"Gradients do not exist for variables \[{_MASK_EMBEDDING}(, {_MASK_EMBEDDING})*\]"
    r"|Assets written to: .*/\.incomplete-"
    r"|\d+ out of the last \d+ calls to <(bound method TaskNetwork\.forward|function ScoringPasses)"
)
tf.get_logger().addFilter(lambda record: not _EXPECTED.match(record.getMessage()))
# Inputs that the attention mask is made from.
_MASK_INPUTS = (
    "order",
    "perm_mask",
    "segment_ids",
    "is_padding",
    "memory_length",
    "target_positions",
)
INPUTS = {"token_ids", "is_reversed", "memory", "dropout_seed", *_MASK_INPUTS}
