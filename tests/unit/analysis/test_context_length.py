"""Effective context length: the definition of the Transformer-XL paper in loops, and by hand."""

import numpy as np
import pytest

from official.xlnet.analysis.context_length import relative_context_lengths
from official.xlnet.errors import ConfigError

LENGTHS = [1, 2, 5, 7]


def in_loops(losses, name, hardest):
    """Steps 1 and 2 of appendix C."""
    for c in range(len(LENGTHS) - 1):
        best = [min(losses[i][c][t] for i in losses) for t in range(len(losses[name][c]))]
        hard = sorted(range(len(best)), key=lambda t: -best[t])[: round(hardest * len(best))]
        short = sum(best[t] for t in hard) / len(hard)
        long = sum(min(best[t], losses[name][c + 1][t]) for t in hard) / len(hard)
        if (np.exp(short) - np.exp(long)) / np.exp(short) < 0.01:
            return LENGTHS[c]
    return LENGTHS[-1]


def test_lengths_of_a_table_by_hand():
    """b gains to 5 words where it is alone; a is better with 2 words than b with 5.

    At the harder word, the second one, b goes on to 7.
    """
    a = [[4.0, 9.0], [2.0, 9.0], [2.0, 9.0], [2.0, 9.0]]
    b = [[5.0, 8.0], [4.0, 8.0], [3.0, 8.0], [3.0, 7.0]]
    assert relative_context_lengths({"a": a}, LENGTHS) == {"a": 2}
    assert relative_context_lengths({"b": [row[:1] for row in b]}, LENGTHS) == {"b": 5}
    assert relative_context_lengths({"a": a, "b": b}, LENGTHS) == {"a": 2, "b": 1}
    late = [[5.0, 8.0], [4.0, 7.9], [3.0, 7.5], [3.0, 7.0]]
    assert relative_context_lengths({"a": a, "b": late}, LENGTHS, 0.5) == {"a": 1, "b": 7}


@pytest.mark.parametrize("hardest", [0.25, 1.0])
def test_lengths_are_those_of_the_definition(hardest):
    random, seen = np.random.default_rng(5), set()
    for _ in range(50):
        drop = random.exponential(0.02, [3, 1, 4, 1]).cumsum(axis=2)[:, 0]
        tables = 5 - drop + random.normal(0, 0.02, [3, 4, 16])
        losses = dict(zip("abc", tables, strict=True))
        found = relative_context_lengths(losses, LENGTHS, hardest)
        assert found == {name: in_loops(losses, name, hardest) for name in losses}
        seen |= {*found.values()}
    assert seen == {*LENGTHS}


@pytest.mark.parametrize(("lengths", "hardest"), [([2, 1], 1.0), ([1, 2], 0.0)], ids=str)
def test_wrong_arguments(lengths, hardest):
    with pytest.raises(ConfigError, match="expected"):
        relative_context_lengths({"a": [[1.0], [1.0]]}, lengths, hardest)
