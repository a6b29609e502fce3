"""Synthetic batches and shapes shared by all benchmarked implementations.

All implementations get the same tokens, segments and number of targets. Ours samples targets and
orders in the step; the peers get precomputed masks, which is not part of their time.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

SEP, CLS = 4, 3
FIRST_TOKEN = 9
LEARNING_RATE = 1e-4
DROPOUT = 0.1


@dataclasses.dataclass(frozen=True)
class Shape:
    """Sizes of a model and a batch.

    Attributes:
      num_layers: number of layers, L.
      d_model: width, D.
      num_heads: number of attention heads, N.
      d_inner: feed-forward width, F.
      vocab_size: vocabulary size, V.
      seq_len: number of tokens of a row, T.
      mem_len: memory length, M; 0 for no memory.
      reuse_len: number of tokens whose hidden states are cached as memory.
      num_predict: number of targets of a row, P.
      batch_size: number of rows, B.
      depth: blocks of the layers; see `ModelConfig`.
    """

    num_layers: int
    d_model: int
    num_heads: int
    d_inner: int
    vocab_size: int
    seq_len: int
    mem_len: int
    reuse_len: int
    num_predict: int
    batch_size: int
    depth: str = "stacked"

    @property
    def tokens(self) -> int:
        """Number of tokens of a batch."""
        return self.batch_size * self.seq_len


# Three layers of XLNet-base as pre-trained in the paper (table 7), a small and a tiny model.
BASE3 = Shape(3, 768, 12, 3072, 32000, 512, 384, 256, 85, 2)
SMALL = Shape(4, 256, 4, 1024, 8000, 128, 96, 64, 21, 16)
TINY = Shape(2, 128, 4, 512, 4000, 128, 0, 64, 63, 16)
SHAPES = {"base3": BASE3, "small": SMALL, "tiny": TINY}


def encoding(batch_size: int, seq_len: int) -> Shape:
    """Returns the shape of a `base3` encoder pass without memory and targets."""
    return dataclasses.replace(
        BASE3, batch_size=batch_size, seq_len=seq_len, mem_len=0, reuse_len=0, num_predict=1
    )


def growing(seq_len: int, mem_len: int) -> Shape:
    """Returns a shape of two layers of width 256 and 2,048 tokens in rows of `seq_len`."""
    return dataclasses.replace(
        SMALL,
        num_layers=2,
        seq_len=seq_len,
        mem_len=mem_len,
        reuse_len=seq_len // 2,
        num_predict=seq_len // 6,
        batch_size=2048 // seq_len,
    )


def config_of(shape: Shape, training: dict[str, Any] | None = None, **model: Any):
    """Returns the experiment configuration of a shape.

    Args:
      shape: sizes of model and batch.
      training: further settings of `training`.
      **model: further settings of `model`.
    """
    from official.xlnet.configs.experiment import XLNetConfig

    sizes = dataclasses.asdict(shape)
    data = {key: sizes.pop(key) for key in ("seq_len", "reuse_len", "num_predict")}
    batch_size = sizes.pop("batch_size")
    training = {"batch_size": batch_size, "learning_rate": LEARNING_RATE, **(training or {})}
    config = XLNetConfig.from_dict(
        {
            "model": {**sizes, "dropout": DROPOUT, "dropatt": DROPOUT, **model},
            "data": data,
            "training": training,
        }
    )
    config.check()
    return config


def tokens_and_segments(shape: Shape, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Returns random tokens and the segment ids of two texts with SEP and CLS, int32 [B, T]."""
    generator = np.random.default_rng(seed)
    size = (shape.batch_size, shape.seq_len)
    token_ids = generator.integers(FIRST_TOKEN, shape.vocab_size, size).astype(np.int32)
    boundary = 3 * shape.seq_len // 4
    segment_ids = np.zeros(size, np.int32)
    segment_ids[:, boundary:-1], segment_ids[:, -1] = 1, 2
    token_ids[:, boundary - 1] = token_ids[:, -2] = SEP
    token_ids[:, -1] = CLS
    return token_ids, segment_ids


def windows(shape: Shape, seed: int = 0) -> dict[str, np.ndarray]:
    """Returns the batch in our record format; odd rows are reversed, all memory is valid."""
    token_ids, segment_ids = tokens_and_segments(shape, seed)
    generator = np.random.default_rng(seed + 1)
    rows = shape.batch_size
    return {
        "token_ids": token_ids,
        "segment_ids": segment_ids,
        "is_word_start": generator.random(token_ids.shape) < 0.7,
        "can_be_target": token_ids >= FIRST_TOKEN,
        "is_reversed": np.arange(rows) % 2 == 1,
        "context_length": np.full(rows, shape.mem_len, np.int32),
        "is_next": np.ones(rows, np.int32),
        "window_id": np.arange(rows, dtype=np.int64),
        "epoch": np.zeros(rows, np.int32),
    }


def masked_batch(shape: Shape, seed: int = 0) -> dict[str, Any]:
    """Returns the batch in the peers' format: permutation masks, one-hot targets and memory.

    Args:
      shape: sizes of model and batch.
      seed: random seed.

    Returns:
      A dictionary with
        token_ids, segment_ids: int32 [B, T].
        is_hidden: float32 [B, T, T], 1 where token i must not attend to token j.
        target_one_hot: float32 [B, P, T].
        is_target: float32 [B, T].
        labels: int32 [B, P].
        memory: float32 [L, B, M, D].
    """
    token_ids, segment_ids = tokens_and_segments(shape, seed)
    generator = np.random.default_rng(seed + 1)
    rows, length, targets = shape.batch_size, shape.seq_len, shape.num_predict
    step_BT = np.full((rows, length), -1)
    for row in range(rows):
        chosen = generator.choice(np.flatnonzero(token_ids[row] >= FIRST_TOKEN), targets, False)
        step_BT[row, chosen] = generator.permutation(targets)
    is_target = step_BT >= 0
    position_BP = np.nonzero(is_target)[1].reshape(rows, targets)
    one_hot = (position_BP[..., None] == np.arange(length)).astype(np.float32)
    memory = generator.standard_normal((shape.num_layers, rows, shape.mem_len, shape.d_model))
    return {
        "token_ids": token_ids,
        "segment_ids": segment_ids,
        "is_hidden": (is_target[:, None] & (step_BT[:, None] >= step_BT[..., None])).astype(
            np.float32
        ),
        "target_one_hot": one_hot,
        "is_target": is_target.astype(np.float32),
        "labels": np.take_along_axis(token_ids, position_BP, 1),
        "memory": 0.5 * memory.astype(np.float32),
    }
