"""`model` section of the configuration: hyperparameters of the network."""

from __future__ import annotations

import dataclasses

from official.xlnet.configs.base import Config
from official.xlnet.configs.validation import require, require_one_of

_NUM_SPECIAL = 9  # Equals `tokenization.special_tokens.NUM_SPECIAL`.


@dataclasses.dataclass
class ModelConfig(Config):
    """Hyperparameters of the XLNet encoder.

    Attributes:
      vocab_size: vocabulary size, V.
      num_layers: number of transformer blocks, L.
      d_model: hidden size, D.
      num_heads: number of attention heads, N; the size of a head is H = D / N.
      d_inner: hidden size of the feed-forward network, F.
      activation: activation of the feed-forward network: `gelu` (tanh approximation, as in the
        paper's code), `gelu_exact` (erf) or `relu`.
      untie_r: whether each layer has its own attention biases r_w, r_r and r_s.
      attention_type: `bi` (bidirectional), or `uni` (causal: no position attends to a later one).
      clamp_len: relative distances are clamped to [-clamp_len, clamp_len]; 0 disables clamping.
      mem_len: number of hidden states per layer cached from previous windows, M; 0 disables the
        memory.
      dropout: dropout rate after embeddings, attention output and feed-forward layers.
      activation_dropout: dropout rate after the activation of the feed-forward network ("GELU
        dropout" in table 7 of the paper); null: that of `dropout`.
      dropatt: dropout rate of the attention probabilities.
      init_std: standard deviation of the normal initializer.
      recompute: activations that the backward pass recomputes to save memory (gradient
        checkpointing): `none`, `attention` (scores and probabilities) or `block` (whole blocks).
    """

    vocab_size: int = 32000
    num_layers: int = 12
    d_model: int = 768
    num_heads: int = 12
    d_inner: int = 3072
    activation: str = "gelu"
    untie_r: bool = True
    attention_type: str = "bi"
    clamp_len: int = 0
    mem_len: int = 384
    dropout: float = 0.1
    activation_dropout: float | None = None
    dropatt: float = 0.1
    init_std: float = 0.02
    recompute: str = "none"

    @property
    def d_head(self) -> int:
        """Size of one attention head, H."""
        return self.d_model // self.num_heads

    def check(self) -> None:
        """Raises `ConfigError` if a value is out of range or values are incompatible."""
        require(
            self.vocab_size > _NUM_SPECIAL,
            "model.vocab_size",
            f"more than the {_NUM_SPECIAL} special ids",
            self.vocab_size,
        )
        for key in ("num_layers", "d_model", "num_heads", "d_inner"):
            require(getattr(self, key) > 0, f"model.{key}", "at least 1", getattr(self, key))
        require(
            self.d_model % self.num_heads == 0,
            "model.num_heads",
            f"a divisor of d_model = {self.d_model}",
            self.num_heads,
        )
        require(self.d_model % 2 == 0, "model.d_model", "an even number", self.d_model)
        require_one_of("model.activation", self.activation, ("gelu", "gelu_exact", "relu"))
        require_one_of("model.attention_type", self.attention_type, ("bi", "uni"))
        require_one_of("model.recompute", self.recompute, ("none", "attention", "block"))
        for key in ("dropout", "activation_dropout", "dropatt"):
            rate = getattr(self, key)
            require(rate is None or 0 <= rate < 1, f"model.{key}", "in [0, 1)", rate)
        require(self.mem_len >= 0, "model.mem_len", "0 or more", self.mem_len)
        require(self.clamp_len >= 0, "model.clamp_len", "0 or more", self.clamp_len)
