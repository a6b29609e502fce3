"""`model` section of the configuration: hyperparameters of the network."""

from __future__ import annotations

import dataclasses
from typing import Annotated

from absl import logging

from official.xlnet.configs.base import Section
from official.xlnet.configs.registry import ATTENTION_INITS, DEPTHS, NETWORKS, SETTINGS
from official.xlnet.configs.validation import (
    COUNT,
    COUNT_OR_NONE,
    RATE,
    Range,
    require,
)
from official.xlnet.files.schema import OneOf

_NUM_SPECIAL = 9  # Equals `tokenization.special_tokens.NUM_SPECIAL`.


@dataclasses.dataclass
class ModelConfig(Section):
    """Hyperparameters of the encoder.

    Attributes:
      network: `xlnet`, or the name of an extension: `bert`, `gpt` or `gpt2`, to compare
        with.
      vocab_size: vocabulary size, V; 0: the size of the training vocabulary. A
        larger number is the number of rows of the word embedding, see `embedding_rows`.
      embedding_rows: number of rows of the word embedding, if it has more than V, e.g. a multiple
        of 128. The rows after V are padding, which is never predicted; 0: V.
      num_layers: number of layers, L.
      depth: blocks of the layers: `stacked` (a block for each), or the name of an extension:
        `shared` or `adaptive`, as in the Universal Transformer.
      d_model: hidden size, D.
      num_heads: number of attention heads, N; the size of a head is H = D / N.
      d_inner: hidden size of the feed-forward network, F.
      activation: activation of the feed-forward network: `gelu` (tanh approximation, as in the
        paper's code), `gelu_exact` (erf) or `relu`.
      untie_r: whether each layer has its own attention biases r_w, r_r and r_s.
      attention_type: `bi` (bidirectional), or `uni` (causal: no position attends to a later one).
      segments: whether attention tells segments apart; without, `segment_ids` have no effect.
      clamp_len: relative distances are clamped to [-clamp_len, clamp_len]; 0 disables clamping.
      mem_len: number of hidden states per layer cached from previous windows, M; 0 disables the
        memory.
      dropout: dropout rate after embeddings, attention output and feed-forward layers.
      activation_dropout: dropout rate after the activation of the feed-forward network ("GELU
        dropout" in table 7 of the paper); null: the same as `dropout`.
      dropatt: dropout rate of the attention probabilities.
      init_std: standard deviation of the normal initializer.
      attention_init: initialization of attention: `normal`, or the name of an extension:
        `neighbors`, where each head starts by copying its share of one neighbor.
      recompute: activations that the backward pass recomputes to save memory (gradient
        checkpointing): `none`, `attention` (scores and probabilities) or `block` (whole blocks).
    """

    section = "model"
    chooser = "network"

    network: Annotated[str, NETWORKS] = "xlnet"
    vocab_size: Annotated[int, COUNT_OR_NONE] = 0
    embedding_rows: Annotated[int, COUNT_OR_NONE] = 0
    num_layers: Annotated[int, Range(1, 1000)] = 12
    depth: Annotated[str, DEPTHS] = "stacked"
    d_model: Annotated[int, COUNT] = 768
    num_heads: Annotated[int, COUNT] = 12
    d_inner: Annotated[int, COUNT] = 3072
    activation: Annotated[str, OneOf(("gelu", "gelu_exact", "relu"))] = "gelu"
    untie_r: bool = True
    attention_type: Annotated[str, OneOf(("bi", "uni"))] = "bi"
    segments: bool = True
    clamp_len: Annotated[int, COUNT_OR_NONE] = 0
    mem_len: Annotated[int, COUNT_OR_NONE] = 384
    dropout: Annotated[float, RATE] = 0.1
    activation_dropout: Annotated[float | None, RATE] = None
    dropatt: Annotated[float, RATE] = 0.1
    init_std: Annotated[float, Range(0, 100)] = 0.02
    attention_init: Annotated[str, ATTENTION_INITS] = "normal"
    recompute: Annotated[str, OneOf(("none", "attention", "block"))] = "none"

    @property
    def d_head(self) -> int:
        """Size of one attention head, H."""
        return self.d_model // self.num_heads

    @property
    def num_embeddings(self) -> int:
        """Number of rows of the word embedding, including padding."""
        return max(self.vocab_size, self.embedding_rows)

    def fit_vocabulary(self, num_pieces: int, vocabulary: str) -> None:
        """Sets `vocab_size` to the number of pieces of a vocabulary.

        A larger `vocab_size` becomes `embedding_rows`.

        Args:
          num_pieces: number of pieces.
          vocabulary: name of the vocabulary, for messages.

        Raises:
          ConfigError: the embedding has too few rows, or belongs to another vocabulary.

        Example:
          >>> model = ModelConfig(vocab_size=4096)
          >>> model.fit_vocabulary(4000, "spiece.model")
          >>> model.vocab_size, model.embedding_rows
          (4000, 4096)
        """
        self.check_ranges("vocab_size", "embedding_rows")
        rows = self.num_embeddings
        if 0 < self.vocab_size < self.embedding_rows:
            holds, expected = self.vocab_size == num_pieces, f"{num_pieces}"
        else:
            holds, expected = not rows or rows >= num_pieces, f"at least {num_pieces}, or 0"
        require(
            holds,
            "model.vocab_size",
            f"{expected}, as the vocabulary {vocabulary!r} has {num_pieces} pieces",
            self.vocab_size or rows,
        )
        if self.vocab_size > num_pieces:
            logging.log_first_n(
                logging.WARNING,
                "model.vocab_size is %d and the vocabulary %r has %d pieces: the remaining rows "
                "of the word embedding are padding, which is never predicted",
                1,
                self.vocab_size,
                vocabulary,
                num_pieces,
            )
        self.vocab_size, self.embedding_rows = num_pieces, rows if rows > num_pieces else 0

    def require_size(self) -> None:
        """Raises `ConfigError` if the vocabulary size is not known yet."""
        require(
            self.vocab_size > 0,
            "model.vocab_size",
            "the number of pieces of the vocabulary, len(tokenizer), to create a model; "
            "pretraining_dataset(…, config=config) sets it",
            self.vocab_size,
        )

    @property
    def longest_input(self) -> int | None:
        """Largest number of tokens that the network reads; None if it reads any number."""
        return None

    @property
    def num_parameters(self) -> int:
        """Number of parameters of the encoder.

        V·D + D embeddings; per block 5·D² in attention, 2·D·F + F + D in the feed-forward network,
        2·D of segments and 4·D of layer norms; 3·D biases, per block if they are untied.
        """
        width, inner = self.d_model, self.d_inner
        biases = 3 * width
        block = 5 * width**2 + 2 * width * inner + inner + width + 2 * width + 4 * width
        if self.untie_r:
            block, biases = block + biases, 0
        depth = self.settings(SETTINGS.find(f"model.depth={self.depth}", ModelConfig))
        return self.num_embeddings * width + width + depth.depth_parameters(block) + biases

    def depth_parameters(self, block: int) -> int:
        """Number of parameters of all layers.

        Args:
          block: number of parameters of a block.
        """
        return self.num_layers * block

    def check(self) -> None:
        """Raises `ConfigError` if a value is out of range or values are incompatible."""
        super().check()
        require(
            not 0 < self.vocab_size <= _NUM_SPECIAL,
            "model.vocab_size",
            f"at least {_NUM_SPECIAL + 1}, as a vocabulary has {_NUM_SPECIAL} special pieces, or 0",
            self.vocab_size,
        )
        require(
            self.d_model % self.num_heads == 0,
            "model.num_heads",
            f"a divisor of d_model = {self.d_model}",
            self.num_heads,
        )
        require(self.d_model % 2 == 0, "model.d_model", "an even number", self.d_model)
