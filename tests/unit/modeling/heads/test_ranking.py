"""The loss of ranking, and the candidates of a training unit."""

import collections

import numpy as np
import pytest

from official.xlnet.configs.registry import TASKS
from official.xlnet.modeling.heads import create_head
from official.xlnet.tasks.ranking import RankingExample
from official.xlnet.tokenization.tokenizer import Tokenizer
from tests.helpers.task_corpora import task_config
from tests.helpers.tiny import randomize

UNITS, DOCUMENTS, TOKENS, WIDTH = 5, 3, 11, 26


@pytest.mark.parametrize("scoring", ["summary", "kernel"])
@pytest.mark.parametrize("documents", [1, 2, DOCUMENTS])
def test_softmax_over_the_candidates_that_are_there(scoring, documents):
    head = create_head(task_config(name="ranking", scoring=scoring))
    head.build([None, None, None, WIDTH])
    randomize(head.variables, seed=1, scale=1.0)
    sequences = documents + (scoring == "kernel")
    rng = np.random.default_rng(0)
    content = rng.standard_normal((UNITS, sequences, TOKENS, WIDTH)).astype(np.float32)
    is_padding = np.zeros((UNITS, sequences, TOKENS), bool)
    is_padding[..., :2] = True
    if documents == DOCUMENTS:
        is_padding[1, -1] = True
    token_ids = rng.integers(9, 211, is_padding.shape).astype(np.int32)
    outputs = head(content, {"token_ids": token_ids, "is_padding": is_padding})
    score = outputs["score"].numpy().astype(float)
    assert score.shape == (UNITS, documents)
    wanted = []
    for u in range(UNITS):
        there = score[u, : documents - (documents == DOCUMENTS and u == 1)]
        wanted.append(-np.log(np.exp(there[0]) / np.exp(there).sum()))
    np.testing.assert_allclose(head.loss(outputs, {}), wanted, rtol=1e-4, atol=1e-6)


def examples():
    """Queries with 1 better and 3 worse, 2 better and 1 worse, and only irrelevant documents."""
    grades = {"q": (1, 0, 0, -2), "r": (2, 1, 2), "s": (0, 0)}
    return [
        RankingExample(f"{query}{n}", query, f"the {query}", f"of the {query} {n}", float(grade))
        for query, of_query in grades.items()
        for n, grade in enumerate(of_query)
    ]


@pytest.mark.parametrize("num_candidates", [2, 3, 5])
def test_training_units(vocab_file, num_candidates):
    config = task_config(
        name="ranking", scoring="summary", num_candidates=num_candidates, max_length=40
    )
    task = TASKS["ranking"](config, Tokenizer(vocab_file))
    units_of = task.training_units(examples())
    assert task.counts["skipped_queries"] == 1
    packed = {}
    for example, [unit] in zip(examples(), task.units(examples()), strict=True):
        packed[tuple(unit.sequences[0]["token_ids"])] = example
    worse = collections.Counter()
    for epoch in range(20):
        units = units_of(epoch)
        assert len(units) == 3  # One for each more relevant document.
        for unit in units:
            assert len(unit.sequences) == num_candidates
            found = [packed[tuple(s["token_ids"])] for s in unit.sequences if s]
            first, *others = found
            assert len({x.query_id for x in found}) == 1
            assert len({x.id for x in found}) == len(found)
            assert all(max(x.relevance, 0) < max(first.relevance, 0) for x in others)
            available = {"q": 3, "r": 1}[first.query_id]
            assert len(others) == min(num_candidates - 1, available)
            worse.update(x.id for x in others)
    assert set(worse) == {"q1", "q2", "q3", "r1"}
