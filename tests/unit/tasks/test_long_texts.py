"""What is read of texts that are longer than an input."""

import collections
import random

import pytest

from official.xlnet.configs.registry import TASKS
from official.xlnet.data.examples import TextExample
from official.xlnet.tokenization.special_tokens import CLS_ID, SEP_ID
from tests.helpers.task_corpora import task_config

LENGTH, OTHER = 13, [91, 92]
ROOM = LENGTH - len(OTHER) - 3


class Ids:
    """A tokenizer of texts that are ids."""

    def __init__(self):
        self.counts = collections.Counter()

    def encode_batch(self, texts):
        return [[int(word) for word in text.split()] for text in texts]


def read(size, side, **settings):
    """(what is read of a text of `size` tokens and of `OTHER`, that text, counts)."""
    rng = random.Random(size)
    text = [rng.randint(100, 999) for _ in range(size)]
    config = task_config(
        name="classification", max_length=LENGTH, truncation_side=side, mem_len=7, **settings
    )
    task = TASKS["classification"](config, Ids())
    texts = tuple(" ".join(map(str, ids)) for ids in (text, OTHER))
    [[unit]] = task.units([TextExample("1", texts)])
    return [s["token_ids"].tolist() for s in unit.sequences], text, task.counts


def inputs(part):
    return [*part, SEP_ID, *OTHER, SEP_ID, CLS_ID]


@pytest.mark.parametrize("size", [0, 1, ROOM, ROOM + 1, 53])
def test_truncation(size):
    for side, part in (("right", slice(0, ROOM)), ("left", slice(max(0, size - ROOM), None))):
        sequences, text, counts = read(size, side)
        assert sequences == [inputs(text[part])]
        assert counts["truncated"] == (size > ROOM)


@pytest.mark.parametrize("stride", [1, 3, ROOM, ROOM + 5])
def test_windows(stride):
    advance = min(stride, ROOM)
    limit = ROOM + 3 * advance
    for size in (0, 1, ROOM, ROOM + 1, limit - 1, limit, limit + 1, 53):
        for side in ("right", "left"):
            sequences, text, counts = read(
                size, side, long_texts="windows", window_stride=stride, max_windows=4
            )
            seen = text[:limit] if side == "right" else text[max(0, size - limit) :]
            expected = [inputs(seen[:ROOM])]
            for start in (advance, 2 * advance, 3 * advance):
                is_needed = start - advance + ROOM < len(seen)
                expected.append(inputs(seen[start : start + ROOM]) if is_needed else [])
            assert sequences == expected
            assert counts["truncated"] == (size > limit)


def test_segments():
    for size in (0, 1, ROOM, ROOM + 1, 3 * LENGTH - 5, 3 * LENGTH - 4, 53):
        for side in ("right", "left"):
            sequences, text, counts = read(size, side, long_texts="memory", max_windows=3)
            limit = 3 * LENGTH - len(OTHER) - 3
            seen = text[:limit] if side == "right" else text[max(0, size - limit) :]
            padded = [None] * (3 * LENGTH - len(inputs(seen))) + inputs(seen)
            parts = [padded[n * LENGTH : (n + 1) * LENGTH] for n in range(3)]
            assert sequences == [[i for i in part if i is not None] for part in parts]
            assert counts["truncated"] == (size > limit)
