"""Ranking metrics: NDCG@k, ERR@k and reciprocal rank, as TREC's gdeval and trec_eval compute them.

They take the relevance grades of one query's documents in ranked order, best first. A grade below
zero (junk) counts as 0, not relevant. NDCG has the linear gain g of trec_eval, or the exponential
one of gdeval, 2^g - 1; ERR is defined by 2^g - 1 alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence

import numpy as np


def dcg(grades: Sequence[float], k: int, gain: str = "linear") -> float:
    """Discounted cumulative gain (DCG@k): Σ_{i≤k} gain(g_i) / log2(i + 1).

    Args:
      grades: relevance grades g_i in ranked order.
      k: cutoff, the number of ranks that count.
      gain: `linear`, g, or `exponential`, 2^g - 1.

    Example:
      >>> dcg([2.0, 0.0, 1.0], k=3), dcg([2.0, 0.0, 1.0], k=3, gain="exponential")
      (2.5, 3.5)
    """
    gains = np.maximum(np.asarray(grades[:k], float), 0)
    if gain == "exponential":
        gains = np.exp2(gains) - 1
    return float(np.sum(gains / np.log2(np.arange(len(gains)) + 2)))


def ndcg(
    grades: Sequence[float],
    k: int,
    judged: Iterable[float] | None = None,
    gain: str = "linear",
) -> float:
    """Normalized discounted cumulative gain (NDCG@k): DCG@k / DCG@k of the ideal ranking.

    Args:
      grades: relevance grades of the ranked documents, in ranked order.
      k: cutoff, the number of ranks that count.
      judged: relevance grades of all judged documents of the query, ranked or not. Default:
        `grades`.
      gain: see `dcg`.

    Returns:
      NDCG@k in [0, 1]; 0 if no document is relevant.

    Example:
      >>> ndcg([1.0, -2.0], k=2)
      1.0
    """
    best = dcg(sorted(grades if judged is None else judged, reverse=True), k, gain)
    return dcg(grades, k, gain) / best if best else 0.0


def err(grades: Sequence[float], k: int, highest: float | None = None) -> float:
    """Expected reciprocal rank (Chapelle et al., 2009): Σ_i 1/i · R_i · Π_{j<i} (1 - R_j).

    R_i = (2^g_i - 1) / 2^highest is the probability that document i satisfies the user.

    Args:
      grades: relevance grades g_i in ranked order.
      k: cutoff, the number of ranks that count.
      highest: the highest possible grade. None: the highest of `grades`.

    Example:
      >>> err([0.0, 1.0], k=2)
      0.25
    """
    if highest is None:
        highest = max(grades, default=0.0)
    still_looking, expected = 1.0, 0.0
    for rank, grade in enumerate(grades[:k], start=1):
        satisfied = (2.0 ** max(grade, 0.0) - 1) / 2.0**highest
        expected += still_looking * satisfied / rank
        still_looking *= 1 - satisfied
    return expected


def reciprocal_rank(grades: Sequence[float]) -> float:
    """Reciprocal rank: 1 / rank of the first relevant document, 0 if there is none.

    Args:
      grades: relevance grades in ranked order; a grade above 0 is relevant.

    Example:
      >>> reciprocal_rank([0.0, 2.0, 1.0])
      0.5
    """
    for rank, grade in enumerate(grades, start=1):
        if grade > 0:
            return 1 / rank
    return 0.0


def ranking_order(scores: Mapping[str, float]) -> list[str]:
    """Documents by descending score, ties by descending name, as in trec_eval and gdeval.

    As in trec_eval, scores are compared in float32.

    Args:
      scores: {document: score}.

    Example:
      >>> ranking_order({"a": 1.0, "b": 1.0, "c": 2.0})
      ['c', 'b', 'a']
    """
    return sorted(scores, key=lambda name: (np.float32(scores[name]), name), reverse=True)


def evaluate_ranking(
    grades: Mapping[str, Mapping[str, float]],
    scores: Mapping[str, Mapping[str, float]],
    k: int,
    highest: float | None = None,
    gain: str = "linear",
) -> dict[str, float]:
    """Computes NDCG@k, ERR@k and MRR, averaged over queries.

    Queries without a relevant document count as 0 in MRR and in NDCG with linear gain, as in
    trec_eval; they are left out of ERR and of NDCG with exponential gain, as in gdeval. A judged
    query that is not ranked counts as 0 in all, as with trec_eval -c.

    Args:
      grades: {query: {document: grade}}. Documents without a score count in the ideal ranking.
      scores: {query: {document: score}}; see `ranking_order`. Documents without a grade count as
        not relevant.
      k: cutoff, the number of ranks that count.
      highest: the highest possible grade, see `err`. Default: the maximum of all grades.
      gain: the gain of NDCG, see `dcg`.

    Returns:
      `ndcg@<k>`, `err@<k>` and `mrr`.
    """
    if highest is None:
        highest = max(itertools.chain(*(x.values() for x in grades.values())), default=0.0)
    ndcgs, errs, reciprocal_ranks = [], [], []
    for query, grade_of in grades.items():
        documents = ranking_order(scores.get(query, {}))
        ranked_grades = [grade_of.get(document, 0.0) for document in documents]
        reciprocal_ranks.append(reciprocal_rank(ranked_grades))
        has_relevant = any(grade > 0 for grade in grade_of.values())
        if has_relevant or gain == "linear":
            ndcgs.append(ndcg(ranked_grades, k, grade_of.values(), gain))
        if has_relevant:
            errs.append(err(ranked_grades, k, highest))
    return {
        f"ndcg@{k}": float(np.mean(ndcgs)) if ndcgs else 0.0,
        f"err@{k}": float(np.mean(errs)) if errs else 0.0,
        "mrr": float(np.mean(reciprocal_ranks)),
    }
