"""Ranking metrics: NDCG@k, ERR@k and reciprocal rank.

They take the relevance grades of one query's documents in ranked order, best first.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def dcg(grades: Sequence[float], k: int) -> float:
    """Discounted cumulative gain (DCG@k): Σ_{i≤k} (2^g_i - 1) / log2(i + 1).

    Args:
      grades: relevance grades g_i in ranked order.
      k: cutoff, the number of ranks that count.

    Example:
      >>> dcg([1.0, 0.0, 1.0], k=3)
      1.5
    """
    gains = np.exp2(np.asarray(grades[:k], float)) - 1
    return float(np.sum(gains / np.log2(np.arange(len(gains)) + 2)))


def ndcg(grades: Sequence[float], k: int) -> float:
    """Normalized discounted cumulative gain (NDCG@k): DCG@k / DCG@k of the ideal ranking.

    Args:
      grades: relevance grades of all documents of the query, in ranked order.
      k: cutoff, the number of ranks that count.

    Returns:
      NDCG@k in [0, 1]; 0 if no document is relevant.

    Example:
      >>> ndcg([1.0, 0.0], k=2)
      1.0
    """
    best = dcg(sorted(grades, reverse=True), k)
    return dcg(grades, k) / best if best else 0.0


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
    highest = max(grades, default=0.0) if highest is None else highest
    still_looking, expected = 1.0, 0.0
    for place, grade in enumerate(grades[:k], start=1):
        satisfied = (2.0**grade - 1) / 2.0**highest
        expected += still_looking * satisfied / place
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
    return next((1 / place for place, grade in enumerate(grades, start=1) if grade > 0), 0.0)


def evaluate_ranking(
    grades: dict[str, dict[str, float]], scores: dict[str, dict[str, float]], k: int
) -> dict[str, float]:
    """Computes NDCG@k, ERR@k and MRR, averaged over queries.

    Args:
      grades: {query: {document: grade}}.
      scores: {query: {document: score}}. Ties are broken by document name. Documents without a
        grade count as not relevant.
      k: cutoff, the number of ranks that count.

    Returns:
      `ndcg@<k>`, `err@<k>` and `mrr`.
    """
    highest = max((g for of_query in grades.values() for g in of_query.values()), default=0.0)
    ndcgs, errs, ranks = [], [], []
    for query, of_query in grades.items():
        of_scores = scores.get(query, {})
        order = sorted(of_scores, key=lambda document: (-of_scores[document], document))
        ranked = [of_query.get(document, 0.0) for document in order]
        missing = [grade for document, grade in of_query.items() if document not in of_scores]
        best = dcg(sorted([*ranked, *missing], reverse=True), k)
        ndcgs.append(dcg(ranked, k) / best if best else 0.0)
        errs.append(err(ranked, k, highest))
        ranks.append(reciprocal_rank(ranked))
    return {
        f"ndcg@{k}": float(np.mean(ndcgs)),
        f"err@{k}": float(np.mean(errs)),
        "mrr": float(np.mean(ranks)),
    }
