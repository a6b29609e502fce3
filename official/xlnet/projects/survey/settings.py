"""Keys of the extensions in the sections of the configuration; imports no TensorFlow."""

from __future__ import annotations

from typing import Annotated

from official.xlnet.configs.base import register_settings
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.key_marks import OF_HEAD, UnreadWith
from official.xlnet.configs.model import ModelConfig
from official.xlnet.configs.objective import ObjectiveConfig
from official.xlnet.configs.validation import COUNT, RATE, Range, require
from official.xlnet.tasks.settings import AnswerModuleConfig

_NETWORKS = ("bert", "gpt", "gpt2")
_WITHOUT_HALTING = UnreadWith("depth", ("stacked", "shared"))


@register_settings("model", network=_NETWORKS)
class BertModelConfig(ModelConfig):
    """`network` may be `bert`, `gpt` or `gpt2`.

    Attributes:
      max_positions: number of learned positions: the longest input.
      num_segments: for `bert`, number of learned segment embeddings; larger ids have the last one.
    """

    unread_with = {
        "untie_r": ("network", _NETWORKS),
        "attention_init": ("network", _NETWORKS),
    }

    max_positions: Annotated[int, COUNT, UnreadWith("network", ("xlnet",))] = 512
    num_segments: Annotated[int, COUNT, UnreadWith("network", ("xlnet", "gpt", "gpt2"))] = 3

    @property
    def _is_chosen(self) -> bool:
        return self.network in _NETWORKS

    @property
    def longest_input(self) -> int | None:
        return self.max_positions

    @property
    def num_parameters(self) -> int:
        """As in `ModelConfig`: embeddings of words and positions; 4·D² + 4·D in attention.

        In `bert` also the embeddings of segments and a layer norm; in `gpt2` a layer norm.
        """
        width, inner = self.d_model, self.d_inner
        rows = self.num_embeddings + self.max_positions
        rows += {"bert": self.num_segments + 2, "gpt": 0, "gpt2": 2}[self.network]
        layer = 4 * width**2 + 4 * width + 2 * width * inner + inner + width + 4 * width
        return rows * width + self.num_layers * layer

    def check(self) -> None:
        super().check()
        if not self._is_chosen:
            return
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
        inputs = {"data.seq_len": config.data.seq_len}
        if config.task.name:
            inputs["task.max_length"] = config.task.max_length
        expected = f"at most model.max_positions = {self.max_positions} {network}"
        for key, length in inputs.items():
            require(length <= self.max_positions, key, expected, length)


@register_settings("model", depth=("shared", "adaptive"))
class UniversalModelConfig(ModelConfig):
    """`depth` may be `shared` (one block for all layers) or `adaptive` (each token halts, too).

    Attributes:
      step_encoding: whether the input of the shared block says which step it is.
      halting_threshold: sum of halting probabilities at which a token halts, with
        `depth: adaptive`; `num_layers` is the most that it goes through.
      ponder_weight: weight in the loss of the mean number of steps (more exactly, of the ponder
        cost), with `depth: adaptive`.
    """

    step_encoding: Annotated[bool, UnreadWith("depth", ("stacked",))] = True
    halting_threshold: Annotated[float, Range(0, 1), _WITHOUT_HALTING] = 0.99
    ponder_weight: Annotated[float, Range(0, 1000), _WITHOUT_HALTING] = 0.01

    def depth_parameters(self, block: int) -> int:
        """As in `ModelConfig`, of one block, and D + 1 of halting."""
        return block + (self.d_model + 1 if self.depth == "adaptive" else 0)


@register_settings("objective", auxiliary=("capitalization", "token_document"))
class ErnieObjectiveConfig(ObjectiveConfig):
    """`auxiliary` may name `capitalization` and `token_document`."""

    def check_with(self, config: XLNetConfig) -> None:
        """Raises `ConfigError` if the question of an objective has no answer or shows it."""
        super().check_with(config)
        if "capitalization" in self.auxiliary:
            lowercase, expected = config.data.lowercase, "false with capitalization"
            require(not lowercase, "data.lowercase", expected, lowercase)
            expected = "permutation or denoising with capitalization"
            require(self.kind != "causal", "objective.kind", expected, self.kind)
        if "token_document" in self.auxiliary:
            reuse_len, mem_len = config.data.reuse_len, config.model.mem_len
            require(reuse_len > 0, "data.reuse_len", "above 0 with token_document", reuse_len)
            expected = "above 0 with denoising and token_document, so that the reuse part is read "
            sees_all = config.objective.predicts_masked and mem_len == 0
            require(not sees_all, "model.mem_len", f"{expected}alone", mem_len)


_CONTIGUOUS = ("full_sentences", "doc_sentences")


@register_settings("objective", input_format=_CONTIGUOUS)
class ContiguousConfig(ObjectiveConfig):
    """`input_format` may be `full_sentences` or `doc_sentences`."""

    def check_with(self, config: XLNetConfig) -> None:
        super().check_with(config)
        where = f"with objective.input_format={self.input_format}"
        require(self.kind == "denoising", "objective.kind", f"denoising {where}", self.kind)
        names = [stage.name for stage in self.stages()]
        require(not names, "objective.auxiliary", f"none {where}, which has no B", names)
        if self.input_format == "doc_sentences":
            mem_len = config.model.mem_len
            require(mem_len == 0, "model.mem_len", f"0 {where}", mem_len)


@register_settings("task", answer_module=["san"])
class StochasticAnswerConfig(AnswerModuleConfig):
    """`answer_module` may be `san` (stochastic answer network of MT-DNN, for pairs of texts).

    Attributes:
      answer_steps: number of steps of `san`, K.
      answer_dropout: probability that a step of `san` does not count, in training.
    """

    answer_steps: Annotated[
        int, Range(1, 100), UnreadWith("answer_module", ("summary",)), OF_HEAD
    ] = 5
    answer_dropout: Annotated[float, RATE, UnreadWith("answer_module", ("summary",))] = 0.1

    def check(self) -> None:
        super().check()
        is_pair = len(self.text_columns) in (0, 2) or self.answer_module != "san"
        require(
            is_pair or self.as_chosen().has_subtasks,  # Each pair among the data sets is compared.
            "task.text_columns",
            "two, which task.answer_module=san compares",
            self.text_columns,
        )
