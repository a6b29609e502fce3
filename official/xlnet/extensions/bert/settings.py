"""Keys of the networks of BERT, GPT and GPT-2 in the `model` section."""

from __future__ import annotations

from official.xlnet.configs.base import register_settings
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.model import ModelConfig
from official.xlnet.configs.validation import COUNT, require
from official.xlnet.errors import require_extra

_NETWORKS = ("bert", "gpt", "gpt2")


@register_settings("model", network=_NETWORKS)
class BertModelConfig(ModelConfig):
    """`network` may be `bert`, `gpt` or `gpt2`.

    Attributes:
      max_positions: number of learned positions: the longest input.
      num_segments: for `bert`, number of learned segment embeddings; larger ids have the last one.
    """

    allowed = {"max_positions": COUNT, "num_segments": COUNT}
    unread_with = {
        "max_positions": ("network", ("xlnet",)),
        "num_segments": ("network", ("xlnet", "gpt", "gpt2")),
        "untie_r": ("network", _NETWORKS),
        "attention_init": ("network", _NETWORKS),
    }

    max_positions: int = 512
    num_segments: int = 3

    @property
    def _is_chosen(self) -> bool:
        return self.network in _NETWORKS

    @property
    def longest_input(self) -> int | None:
        return self.max_positions if self._is_chosen else super().longest_input

    @property
    def num_parameters(self) -> int:
        """As in `ModelConfig`: embeddings of words and positions; 4·D² + 4·D in attention.

        In `bert` also the embeddings of segments and a layer norm; in `gpt2` a layer norm.
        """
        if not self._is_chosen:
            return super().num_parameters
        width, inner = self.d_model, self.d_inner
        rows = self.num_embeddings + self.max_positions
        rows += {"bert": self.num_segments + 2, "gpt": 0, "gpt2": 2}[self.network]
        layer = 4 * width**2 + 4 * width + 2 * width * inner + inner + width + 4 * width
        return rows * width + self.num_layers * layer

    def check(self) -> None:
        super().check()
        if not self._is_chosen:
            return
        require_extra("official.nlp", "garden", f"model.network={self.network}")
        only_xlnet = {"mem_len": 0, "clamp_len": 0, "recompute": "none", "depth": "stacked"}
        only_gpt = {"attention_type": "uni"} if self.network != "bert" else {}
        for key, expected in (only_xlnet | only_gpt).items():
            got = getattr(self, key)
            where = f"{expected!r} with model.network={self.network}"
            require(got == expected, f"model.{key}", where, got)

    def check_with(self, config: XLNetConfig) -> None:
        super().check_with(config)
        if not self._is_chosen:
            return
        network = f"with model.network={self.network}"
        require(
            config.task.name != "" or config.objective.kind != "permutation",
            "objective.kind",
            f"denoising or causal {network}, which has no query stream",
            config.objective.kind,
        )
        require(
            not config.data.bidirectional,
            "data.bidirectional",
            f"false {network}, whose positions have no direction",
            config.data.bidirectional,
        )
        require(
            config.training.products == "float32",
            "training.products",
            f"float32 {network}, whose layers are the Model Garden's",
            config.training.products,
        )
        inputs = {"data.seq_len": config.data.seq_len}
        if config.task.name:
            inputs["task.max_length"] = config.task.max_length
        expected = f"at most model.max_positions = {self.max_positions} {network}"
        for key, length in inputs.items():
            require(length <= self.max_positions, key, expected, length)
