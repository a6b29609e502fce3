"""Figures of ranked lists: NDCG@k, ERR@k, reciprocal rank.

All take the grades of one query's documents in the order of the ranking, best first.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def dcg(grades: Sequence[float], k: int) -> float:
    """Discounted cumulative gain: Σ_i (2^g_i - 1) / log2(i + 1) over the first k places."""
    gains = np.exp2(np.asarray(grades[:k], float)) - 1
    return float(np.sum(gains / np.log2(np.arange(len(gains)) + 2)))


def ndcg(grades: Sequence[float], k: int) -> float:
    """DCG over that of the best possible order; 0 where no document is relevant.

    Args:
      grades: of all documents of the query, in the order of the ranking.
      k: places that count.
    """
    best = dcg(sorted(grades, reverse=True), k)
    return dcg(grades, k) / best if best else 0.0


def err(grades: Sequence[float], k: int, highest: float | None = None) -> float:
    """Expected reciprocal rank (Chapelle et al., 2009): Σ_i 1/i · R_i · Π_{j<i} (1 - R_j).

    R_i = (2^g_i - 1) / 2^highest is the probability that the reader is satisfied.

    Args:
      grades: in the order of the ranking.
      k: places that count.
      highest: the highest grade there can be; by default the highest of `grades`.
    """
    highest = max(grades, default=0.0) if highest is None else highest
    still_looking, expected = 1.0, 0.0
    for place, grade in enumerate(grades[:k], start=1):
        satisfied = (2.0**grade - 1) / 2.0**highest
        expected += still_looking * satisfied / place
        still_looking *= 1 - satisfied
    return expected


def reciprocal_rank(grades: Sequence[float]) -> float:
    """1 / place of the first relevant document; 0 where there is none."""
    return next((1 / place for place, grade in enumerate(grades, start=1) if grade > 0), 0.0)


def evaluate_ranking(
    grades: dict[str, dict[str, float]], scores: dict[str, dict[str, float]], k: int
) -> dict[str, float]:
    """Means over queries of what is above.

    Args:
      grades: {query: {document: grade}}.
      scores: {query: {document: score}}; documents of equal score keep the order of their names,
        documents without a grade have 0.
      k: places that count.
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
