"""Requests of the soak test: random texts, and wrong requests of every kind."""

from __future__ import annotations

import random
from pydoc_data.topics import topics
from typing import Any

import numpy as np

Request = tuple[str, dict[str, Any]]  # (signature, {input: values}).

_LINES = [line for topic in topics.values() for line in topic.splitlines() if line.strip()]
_NUM_LINES = [0, 1, 1, 1, 2, 5, 40]  # Of a text; 0 for none.
_ODD_TEXTS = ["", " \t\n", "a\0b", "\u0301", "😀" * 99, "<sep> <cls>", "‮the", "é" * 3000]
_ODD_SHARE = 0.1
_TOO_LONG = 1_000_000  # Characters; more than `export --max_characters`.
_LARGEST = 2**31 - 1


def random_texts(rng: random.Random, number: int) -> list[str]:
    """Returns texts of all lengths, odd ones among them.

    Args:
      rng: source of the texts.
      number: number of texts.
    """
    return [
        rng.choice(_ODD_TEXTS)
        if rng.random() < _ODD_SHARE
        else " ".join(rng.choices(_LINES, k=rng.choice(_NUM_LINES)))
        for _ in range(number)
    ]


def wrong_requests() -> list[Request]:
    """Returns requests that a model with the input `text` has to refuse."""
    ids, segments = _tokens([[9, 4, 3]]), _tokens([[0, 0, 2]])
    texts: list[dict[str, Any]] = [
        {"text": ["a" * _TOO_LONG]},
        {"text": [1]},
        {"text": [1.5, -2]},
        {"text": [["a"]]},
        {"text": "a"},
        {"words": ["a"]},
        {"text": ["a"], "words": ["a"]},
        {},
    ]
    tokens: list[dict[str, Any]] = [
        {"token_ids": ids},
        {"token_ids": ids + _LARGEST - 9, "segment_ids": segments},
        {"token_ids": -ids, "segment_ids": segments},
        {"token_ids": ids, "segment_ids": segments + 9},
        {"token_ids": ids, "segment_ids": segments[:, :2]},
        {"token_ids": ids, "segment_ids": _tokens([[0, 2, 4]])},
        {"token_ids": ids[0], "segment_ids": segments[0]},
        {"token_ids": np.tile(ids, (1, 5000)), "segment_ids": np.tile(segments, (1, 5000))},
        {"token_ids": ids.astype(np.float32) + 0.5, "segment_ids": segments},
        {"token_ids": [["9"]], "segment_ids": [["0"]]},
    ]
    examples: list[dict[str, Any]] = [{"examples": ["no example"]}, {"examples": [b"\n\x05\n\x03"]}]
    return [
        *(("serving_default", inputs) for inputs in texts),
        *(("token_ids", inputs) for inputs in tokens),
        *(("examples", inputs) for inputs in examples),
    ]


def _tokens(rows: list[list[int]]) -> np.ndarray:
    return np.array(rows, np.int32)
