"""Section `model`: the size and shape of the network."""

from __future__ import annotations

import dataclasses

from official.modeling import hyperparams
from official.xlnet.configs.validation import require, require_one_of

_NUM_SPECIAL = 9  # Of `tokenization.special_tokens`.


@dataclasses.dataclass
class ModelConfig(hyperparams.Config):
    """The network.

    Attributes:
      vocab_size: number of word pieces V.
      num_layers: number of blocks L.
      d_model: width D of the hidden states.
      num_heads: number of attention heads N; the head width is H = D / N.
      d_inner: width F between the two feed-forward matrices.
      activation: `gelu` (tanh form, as in the paper's code), `gelu_exact` (erf form) or `relu`.
      untie_r: whether every layer has its own r_w, r_r and r_s biases.
      attention_type: `bi`, or `uni` where no position attends to a later one.
      clamp_len: relative distances are clamped to ±clamp_len; 0 leaves them alone.
      mem_len: number M of hidden states kept from earlier windows; 0 switches memory off.
      dropout: rate after embeddings, projections and feed-forward matrices.
      dropatt: rate on attention probabilities.
      init_std: standard deviation of the normal initializer.
      recompute: what the backward pass computes again instead of keeping in memory:
        `none`, `attention` (scores and probabilities) or `block` (whole layers).
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
    dropatt: float = 0.1
    init_std: float = 0.02
    recompute: str = "none"

    @property
    def d_head(self) -> int:
        """Width H of one attention head."""
        return self.d_model // self.num_heads

    def check(self) -> None:
        """Raises `ConfigError` where a value is out of range or values contradict each other."""
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
        for key in ("dropout", "dropatt"):
            require(0 <= getattr(self, key) < 1, f"model.{key}", "in [0, 1)", getattr(self, key))
        require(self.mem_len >= 0, "model.mem_len", "0 or more", self.mem_len)
        require(self.clamp_len >= 0, "model.clamp_len", "0 or more", self.clamp_len)
