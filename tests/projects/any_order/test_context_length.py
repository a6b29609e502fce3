"""Effective context length: the definition of the Transformer-XL paper in loops, and by hand."""

import numpy as np
import pytest

from official.xlnet.errors import ConfigError, DataError
from official.xlnet.inference.scoring import Scorer
from official.xlnet.projects.any_order.context_length import (
    losses_by_context,
    relative_context_lengths,
)
from tests.helpers.small_language_model import NumberTokenizer, random_model

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


def as_text(ids):
    return " ".join(map(str, ids))


@pytest.mark.parametrize("kind", ["causal", "permutation"])
def test_losses_by_context_are_those_of_shorter_texts(kind):
    """The last word, given so many before it: what the text has more than those."""
    texts, model = (
        [[11, 30, 17, 9], [25, 28, 13, 10, 12]],
        Scorer(random_model(kind=kind), NumberTokenizer(31)),
    )
    found = losses_by_context(model, [as_text(ids) for ids in texts], [1, 3])
    for length, losses in zip([1, 3], found, strict=True):
        for ids, loss in zip(texts, losses, strict=True):
            last = ids[-length - 1 :]
            if kind == "causal":
                whole, before = model([as_text(last), as_text(last[:-1])])
                wanted = whole.total - before.total
            else:
                wanted = model([as_text(last)], order="pseudo")[0].log_likelihoods[-1]
            assert loss == pytest.approx(-wanted, abs=1e-4)
    with pytest.raises(DataError, match="text 0: expected more than 4 words"):
        losses_by_context(model, [as_text(ids) for ids in texts], [4])
