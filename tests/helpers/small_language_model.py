"""A small language model with weights far from their initial ones, so that all of them matter."""

import collections
import re

import numpy as np

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
from official.xlnet.modeling.ops.keras import keras
from official.xlnet.tokenization.tokenizer import Tokenizer


def random_model(
    seed: int = 0,
    std: float = 0.25,
    seq_len: int = 23,
    reuse_len: int = 7,
    kind: str = "permutation",
    **model,
) -> XLNetPretrainer:
    """A model of 2 layers; `kind` is its objective, `model` overrides keys of that section."""
    settings = {
        "vocab_size": 31,
        "num_layers": 2,
        "d_model": 22,
        "num_heads": 2,
        "d_inner": 37,
        "mem_len": 13,
        **model,
    }
    data = {"seq_len": seq_len, "reuse_len": reuse_len, "num_predict": 5, "bidirectional": False}
    training = {"batch_size": 1, "warmup_steps": 0}
    objective = {"kind": kind}
    config = XLNetConfig.from_dict(
        {"model": settings, "data": data, "training": training, "objective": objective}
    )
    keras.utils.set_random_seed(seed)  # The first weights, to which others are added.
    result = XLNetPretrainer(config)
    random = np.random.default_rng(seed)
    for variable in result.trainable_variables:
        variable.assign(variable + random.normal(0, std, variable.shape))
    return result


class NumberTokenizer(Tokenizer):
    """Reads `12 13 30` as those ids."""

    keep_whitespace = False

    def __init__(self, vocab_size: int):
        self.vocab_size, self.counts = vocab_size, collections.Counter()

    def encode_batch(self, texts):
        return [self.encode(text) for text in texts]

    def encode(self, text: str) -> list[int]:
        return [int(word) for word in text.split()]

    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        words = list(re.finditer(r"\S+", text))
        return [int(word[0]) for word in words], [word.span() for word in words]

    def decode(self, ids: list[int]) -> str:
        return " ".join(map(str, ids))

    def id_to_piece(self, i: int) -> str:
        return f"▁{i}"

    def piece_to_id(self, piece: str) -> int:
        return int(piece.removeprefix("▁"))
