"""NDCG, ERR and reciprocal rank against gdeval and trec_eval."""

import json
import math
import pathlib

import numpy as np
import pytest
import pytrec_eval
import tensorflow as tf

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.modeling.heads import create_head
from official.xlnet.tasks.ranking.graph import MEANS, WIDTHS, kernel_pooling
from official.xlnet.tasks.ranking.metrics import evaluate_ranking
from official.xlnet.tokenization.graph.packing import pack_columns

# Values of gdeval (five decimals) and pytrec_eval; see `make_ranking_golden.py`.
GOLDEN = json.loads(
    (pathlib.Path(__file__).parents[2] / "fixtures" / "ranking_golden.json").read_text()
)


def test_ties_junk_and_unjudged_documents_as_in_gdeval_and_trec_eval():
    """Of each query; and the means, which leave out queries without a relevant document."""
    grades, scores, expected = (GOLDEN[name] for name in ("grades", "scores", "expected"))
    for query in grades:
        tables = {query: grades[query]}, {query: scores[query]}
        found = {}
        for k in (5, 20):
            found |= evaluate_ranking(*tables, k, highest=4, gain="exponential")
        wanted = {name: values[query] for name, values in expected.items()}
        assert found == pytest.approx(wanted, abs=1e-5), query
    relevant = [query for query, of_query in grades.items() if max(of_query.values()) > 0]
    assert set(grades) - set(relevant) == {"4"}
    found = evaluate_ranking(grades, scores, 20, highest=4, gain="exponential")
    for name, queries in (("ndcg@20", relevant), ("err@20", relevant), ("mrr", expected["mrr"])):
        mean = np.mean([expected[name][query] for query in queries])
        assert found[name] == pytest.approx(mean, abs=1e-5), name


@pytest.mark.parametrize("seed", range(40))
def test_every_metric_of_trec_eval_is_as_there(seed):
    """Ties, also of scores that float32 does not tell apart; missing and negative judgements."""
    rng, k = np.random.default_rng(seed), int(np.random.default_rng(seed).integers(1, 25))
    grades, scores = {}, {}
    for query in map(str, range(7)):
        names = [f"d{n}" for n in rng.permutation(40)]
        judged, ranked = names[: rng.integers(1, 30)], names[rng.integers(0, 20) :]
        grades[query] = {name: int(rng.integers(-2, 1 if query == "3" else 5)) for name in judged}
        grades[query][judged[0]] = 0  # With -2 alone, pytrec_eval ends with a segmentation fault.
        noise = rng.choice([0, 1e-12, 0.3], len(ranked))
        values = rng.integers(-3, 4, len(ranked)) + noise
        scores[query] = dict(zip(ranked, values.tolist(), strict=True))
    names = {f"ndcg@{k}": f"ndcg_cut_{k}", "mrr": "recip_rank"}
    evaluator = pytrec_eval.RelevanceEvaluator(grades, {f"ndcg_cut.{k}", "recip_rank"})
    expected = evaluator.evaluate(scores)
    for query in grades:
        found = evaluate_ranking({query: grades[query]}, scores, k)
        for ours, theirs in names.items():
            assert found[ours] == pytest.approx(expected[query][theirs], abs=1e-14)
    found = evaluate_ranking(grades, scores, k)
    for ours, theirs in names.items():
        mean = np.mean([expected[query][theirs] for query in grades])
        assert found[ours] == pytest.approx(mean, abs=1e-14)


def pooled(query, document):
    """Logarithms of the soft counts of the words of a query, summed, for each kernel."""
    norms = np.linalg.norm(query, axis=1)[:, None] * np.linalg.norm(document, axis=1)
    cosines = query @ document.T / norms
    sums = []
    for mean, width in zip(MEANS, WIDTHS, strict=True):
        counts = np.exp(-((cosines - mean) ** 2) / (2 * width**2)).sum(axis=1)
        sums.append(sum(math.log(max(count, 1e-10)) for count in counts))
    return np.array(sums)


def test_the_kernel_head_matches_words_only():
    """Scores are those of kernel pooling over the texts, without SEP, CLS and padding."""
    rng = np.random.default_rng(1)
    query, document = rng.normal(size=(2, 3, 5)), rng.normal(size=(2, 7, 5))
    is_query, is_document = rng.random((2, 3)) < 0.7, rng.random((2, 7)) < 0.7
    found = kernel_pooling(*map(tf.constant, (query, document, is_query, is_document)))
    expected = [pooled(query[n][is_query[n]], document[n][is_document[n]]) for n in range(2)]
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)

    config = XLNetConfig.from_dict(
        {"model": {"d_model": 8, "num_heads": 2}, "task": {"name": "ranking", "scoring": "kernel"}}
    )
    head = create_head(config)
    head.build([None, None, None, 8])
    texts = [[[17, 23], [31, 17, 5, 91, 29]], [[41, 43, 47], [53]]]
    packed = pack_columns([[ids for unit in texts for ids in unit]], 7)
    inputs = {name: tf.constant(x.reshape(2, 2, 7)) for name, x in packed.items()}
    content = rng.normal(size=(2, 2, 7, 8)).astype(np.float32)
    found = head(tf.constant(content), inputs)["score"]
    for unit, ids in enumerate(texts):
        words = [content[unit, number, -2 - len(ids[number]) : -2] for number in range(2)]
        features = tf.constant(0.01 * pooled(*words)[None], tf.float32)
        np.testing.assert_allclose(found[unit], head.score(features)[0], rtol=1e-3)
