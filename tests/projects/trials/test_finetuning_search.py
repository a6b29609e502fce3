"""Successive halving over learning rates and lengths, its table and its recipe."""

import math

import pytest

from official.xlnet.projects.trials.search import candidate_config, successive_halving
from tests.helpers.task_corpora import task_config


def config_of(**task):
    return task_config(name="classification", learning_rate=0.01, num_steps=60, **task)


@pytest.mark.parametrize(
    ("number", "sizes", "last"),
    [
        (1, {1: 1}, [0]),
        (2, {1: 2}, [0, 1]),
        (3, {3: 3, 1: 2}, [2, 0]),
        (8, {3: 8, 1: 4}, [7, 6, 5, 0]),
        (9, {9: 9, 3: 4, 1: 3}, [8, 7, 0]),
        (29, {9: 29, 3: 11, 1: 5}, [28, 27, 26, 25, 0]),
    ],
)
def test_a_third_goes_on_and_the_first_is_always_among_them(number, sizes, last):
    asked = []

    def value(candidate, share):
        asked.append((candidate, share))
        return candidate / share

    assert successive_halving(number, value) == last
    assert {s: sum(share == s for _, share in asked) for s in sizes} == sizes
    assert len(asked) == len(set(asked)) == sum(sizes.values())
    # Those that diverged are dropped.
    assert successive_halving(3, lambda c, share: -math.inf if c else 1.0) == [0]


def test_candidates_are_spread_around_the_configuration():
    config = config_of(epochs=8.0)
    config.training.warmup_steps = 6
    own = [candidate_config(config, n) for n in range(28)]
    assert own[0].as_dict() == config.as_dict()
    rates = [c.training.learning_rate for c in own]
    epochs = [c.task.epochs for c in own]
    assert len(set(rates)) > 25 and 1e-3 <= min(rates) < 2e-3 and 0.05 < max(rates) <= 0.1
    assert 4 <= min(epochs) < 5 and 14 < max(epochs) <= 16
    third = candidate_config(config, 5, share=3)
    assert third.training.learning_rate == own[5].training.learning_rate
    assert third.task.epochs == pytest.approx(own[5].task.epochs / 3, rel=0.01)
    steps = candidate_config(config_of(), 0, share=3).training
    assert (steps.num_steps, steps.checkpoint_steps) == (20, 7)
    for n in range(28):
        for share in (1, 3, 9):
            candidate_config(config, n, share).check()
