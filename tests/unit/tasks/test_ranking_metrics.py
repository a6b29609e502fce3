"""NDCG, ERR and reciprocal rank against published examples, scikit-learn, gdeval and trec_eval."""

import json
import math
import pathlib

import numpy as np
import pytest
import sklearn.metrics
import tensorflow as tf

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.modeling.heads import create_head
from official.xlnet.tasks.ranking.kernel_pooling import MEANS, WIDTHS, kernel_pooling
from official.xlnet.tasks.ranking.metrics import evaluate_ranking, ndcg
from official.xlnet.tokenization.graph.packing import pack_columns


def test_ndcg_agrees_with_scikit_learn():
    rng = np.random.default_rng(0)
    for _ in range(50):
        grades, scores = rng.integers(0, 5, 11), rng.normal(size=11)
        expected = sklearn.metrics.ndcg_score([2.0**grades - 1], [scores], k=7)
        assert ndcg(grades[np.argsort(-scores)], 7) == pytest.approx(expected)


GOLDEN = json.loads(
    (pathlib.Path(__file__).parents[2] / "fixtures" / "ranking_golden.json").read_text()
)


@pytest.mark.parametrize("query", sorted(GOLDEN["grades"]))
def test_ties_junk_and_unjudged_documents_as_in_gdeval_and_trec_eval(query):
    """Values of gdeval (five decimals) and pytrec_eval; see `make_ranking_golden.py`."""
    grades, scores = ({query: GOLDEN[name][query]} for name in ("grades", "scores"))
    found = evaluate_ranking(grades, scores, 5, highest=4) | evaluate_ranking(
        grades, scores, 20, highest=4
    )
    expected = {name: values[query] for name, values in GOLDEN["expected"].items()}
    assert found == pytest.approx(expected, abs=1e-5)


def test_means_leave_out_queries_as_gdeval_and_trec_eval_do():
    found = evaluate_ranking(GOLDEN["grades"], GOLDEN["scores"], 20, highest=4)
    expected = GOLDEN["expected"]
    relevant = [q for q, grades in GOLDEN["grades"].items() if max(grades.values()) > 0]
    assert set(GOLDEN["grades"]) - set(relevant) == {"4"}
    for name, queries in (("ndcg@20", relevant), ("err@20", relevant), ("mrr", expected["mrr"])):
        mean = np.mean([expected[name][query] for query in queries])
        assert found[name] == pytest.approx(mean, abs=1e-5), name


def test_kernel_pooling_against_loops():
    rng = np.random.default_rng(1)
    query, document = rng.normal(size=(2, 3, 5)), rng.normal(size=(2, 7, 5))
    is_query, is_document = rng.random((2, 3)) < 0.7, rng.random((2, 7)) < 0.7
    expected = np.zeros((2, len(MEANS)))
    for b, k, i in np.ndindex(2, len(MEANS), 3):
        if not is_query[b, i]:
            continue
        count = 0.0
        for j in np.flatnonzero(is_document[b]):
            q, d = query[b, i], document[b, j]
            cosine = q @ d / np.linalg.norm(q) / np.linalg.norm(d)
            count += math.exp(-((cosine - MEANS[k]) ** 2) / (2 * WIDTHS[k] ** 2))
        expected[b, k] += math.log(max(count, 1e-10))
    found = kernel_pooling(*map(tf.constant, (query, document, is_query, is_document)))
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)


def test_the_kernel_head_matches_words_only():
    """Scores are those of kernel pooling over the texts, without SEP, CLS and padding."""
    config = XLNetConfig.from_dict(
        {"model": {"d_model": 8, "num_heads": 2}, "task": {"name": "ranking", "scoring": "kernel"}}
    )
    head = create_head(config)
    head.build([None, None, None, 8])
    texts = [[[17, 23], [31, 17, 5, 91, 29]], [[41, 43, 47], [53]]]
    length = 7
    packed = pack_columns([[ids for unit in texts for ids in unit]], length)
    inputs = {name: tf.constant(x.reshape(2, 2, length)) for name, x in packed.items()}
    content = np.random.default_rng(5).normal(size=(2, 2, length, 8)).astype(np.float32)
    found = head(tf.constant(content), inputs)["score"]
    for unit, (query_ids, document_ids) in enumerate(texts):
        query, document = (
            content[unit, number, -2 - len(ids) : -2][None]
            for number, ids in enumerate((query_ids, document_ids))
        )
        everything = (np.ones(array.shape[:2], bool) for array in (query, document))
        features = kernel_pooling(*map(tf.constant, (query, document, *everything)))
        np.testing.assert_allclose(found[unit], head.score(0.01 * features)[0], rtol=1e-4)
